// A server on node's http2 module. `node node.mjs [KEY CERTIFICATE]`; prints its port.
//
// /small, /large (8 MiB), /empty; /echo gives the body back; /count says how long it was; /trailers has some; /cookies sets
// two; /early answers 413 before it reads; /hints sends 103 first; anything else is 404.

import http2 from 'node:http2';
import fs from 'node:fs';

const [key, certificate] = process.argv.slice(2);
// Ten of /large at once are more than the 10 MB that node lets a session hold.
const options = { maxSessionMemory: 200, allowHTTP1: true };
const server = key
  ? http2.createSecureServer({ ...options, key: fs.readFileSync(key), cert: fs.readFileSync(certificate) })
  : http2.createServer(options);

const large = Buffer.alloc(8 << 20, 'n');

server.on('request', (request, response) => {
  const path = request.url;
  if (path === '/small') {
    response.end('small\n');
  } else if (path === '/large') {
    // Without its length nobody could tell that it is whole: node now and then resets a stream in place of END_STREAM.
    response.setHeader('content-length', large.length);
    response.end(large);
  } else if (path === '/empty') {
    response.end();
  } else if (path === '/echo') {
    request.pipe(response);
  } else if (path === '/count') {
    let length = 0;
    request.on('data', (piece) => { length += piece.length; });
    request.on('end', () => response.end(`${length}`));
  } else if (path === '/trailers') {
    response.setHeader('trailer', 'sum');
    response.write('text');
    response.addTrailers({ sum: '42' });
    response.end();
  } else if (path === '/cookies') {
    response.setHeader('set-cookie', ['a=1', 'b=2']);
    response.end(request.headers.cookie ?? '');
  } else if (path === '/early') {
    response.statusCode = 413;
    response.end('too large');
  } else if (path === '/hints') {
    response.writeEarlyHints?.({ link: '</style.css>; rel=preload' });
    response.end('hinted');
  } else {
    response.statusCode = 404;
    response.end('no such thing');
  }
});

server.listen(0, '127.0.0.1', () => console.log(server.address().port));
