"""A server of HTTP/2 that plays scripts, frame by frame, and writes down what the client sends.

Not ours in what matters: frames are made and read by `hyperframe`, field sections by `hpack`. What those refuse to make is
put together by hand (`raw`).

One process plays many scripts. On each line of standard input comes the name of a script, with the files of a certificate
and its key where TLS is to be spoken; a line with a port answers it.
An empty line ends the script: the answer is a line of JSON with one list per connection, of what the client sent on it.
Scripts are functions of this file's siblings `answers.py` (what a client has to take) and `faults.py` (what it has not).
"""

import json
import socket
import ssl
import sys
import threading

import hpack
from hyperframe.frame import DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
CODES = ['NO_ERROR', 'PROTOCOL_ERROR', 'INTERNAL_ERROR', 'FLOW_CONTROL_ERROR', 'SETTINGS_TIMEOUT', 'STREAM_CLOSED',
         'FRAME_SIZE_ERROR', 'REFUSED_STREAM', 'CANCEL', 'COMPRESSION_ERROR', 'CONNECT_ERROR', 'ENHANCE_YOUR_CALM',
         'INADEQUATE_SECURITY', 'HTTP_1_1_REQUIRED']
# Far longer than any script takes: one that hangs ends here.
PATIENCE = 20


class Gone(Exception):
    """The client has closed the connection."""


class Conn:
    """One connection, from the server's side."""

    def __init__(self, sock, record):
        self.sock = sock
        self.record = record
        self.buffer = b''
        self.decoder = hpack.Decoder()
        self.encoder = hpack.Encoder()
        self.request = None
        self.acknowledges = True

    # ---- the client's frames

    def fill(self, length):
        while len(self.buffer) < length:
            piece = self.sock.recv(65536)
            if not piece:
                if isinstance(self.sock, ssl.SSLSocket):
                    # Without it the read would have failed.
                    self.record.append('CLOSE_NOTIFY')
                raise Gone
            self.buffer += piece

    def preface(self):
        self.fill(len(PREFACE))
        assert self.buffer.startswith(PREFACE), self.buffer
        self.buffer = self.buffer[len(PREFACE):]

    def frame(self):
        """The next frame, which is written down."""
        self.fill(9)
        frame, length = Frame.parse_frame_header(memoryview(self.buffer[:9]))
        self.fill(9 + length)
        frame.parse_body(memoryview(self.buffer[9:9 + length]))
        self.buffer = self.buffer[9 + length:]
        self.record.append(self.told(frame))
        if self.acknowledges and isinstance(frame, SettingsFrame) and 'ACK' not in frame.flags:
            self.raw(4, 1, 0)
        return frame

    def told(self, frame):
        """As a test compares it."""
        if isinstance(frame, RstStreamFrame):
            return f'RST_STREAM {frame.stream_id} {CODES[frame.error_code]}'
        if isinstance(frame, GoAwayFrame):
            return f'GOAWAY {CODES[frame.error_code]}'
        if isinstance(frame, (SettingsFrame, PingFrame)) and 'ACK' in frame.flags:
            return f'{type(frame).__name__[:-5].upper()} ACK'
        if isinstance(frame, HeadersFrame):
            fields = dict(self.decoder.decode(frame.data))
            return f'HEADERS {frame.stream_id} {fields[":method"]} {fields[":path"]}'
        return f'{type(frame).__name__[:-5].upper()} {frame.stream_id}'

    def await_frame(self, kind):
        while True:
            frame = self.frame()
            if isinstance(frame, kind):
                return frame

    def await_request(self):
        """The stream of the next request, its head alone."""
        self.request = self.await_frame(HeadersFrame)
        return self.request.stream_id

    # ---- ours

    def raw(self, kind, flags, stream, payload=b''):
        head = len(payload).to_bytes(3, 'big') + bytes([kind, flags]) + stream.to_bytes(4, 'big')
        self.sock.sendall(head + payload)

    def send(self, frame):
        self.sock.sendall(frame.serialize())

    def settings(self, **values):
        self.send(SettingsFrame(0, settings={getattr(SettingsFrame, name): value for name, value in values.items()}))

    def block(self, stream, block, end=False, kind=HeadersFrame, complete=True):
        frame = kind(stream, data=block)
        if complete:
            frame.flags.add('END_HEADERS')
        if end:
            frame.flags.add('END_STREAM')
        self.send(frame)

    def head(self, stream, *fields, status='200', end=False):
        """A head; `status=None` leaves the status out. Fields are written as they are, whatever they hold."""
        own = [] if status is None else [(':status', status)]
        self.block(stream, section(own + list(fields)), end)

    def data(self, stream, data, end=False):
        frame = DataFrame(stream, data=data)
        if end:
            frame.flags.add('END_STREAM')
        self.send(frame)

    def http1(self, most):
        """Answers requests of HTTP/1.1 that have no body, until the client goes, or the next one is one too many."""
        while True:
            self.fill(1)
            while b'\r\n\r\n' not in self.buffer:
                self.fill(len(self.buffer) + 1)
            head, self.buffer = self.buffer.split(b'\r\n\r\n', 1)
            self.record.append(head.split(b'\r\n')[0].decode())
            if most == 0:
                return
            most = most and most - 1
            self.sock.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')

    def answer(self, stream, body=b'ok'):
        self.head(stream)
        self.data(stream, body, end=True)

    def reset(self, stream, code):
        self.send(RstStreamFrame(stream, error_code=CODES.index(code)))

    def goaway(self, last, code='NO_ERROR'):
        self.send(GoAwayFrame(0, last_stream_id=last, error_code=CODES.index(code)))

    def ping(self):
        """Waits for the client to answer a PING, and writes down what comes before that."""
        self.send(PingFrame(0, opaque_data=b'anything'))
        while 'ACK' not in self.await_frame(PingFrame).flags:
            pass

    def rest(self):
        """Answers whatever is still asked, until the client goes."""
        while True:
            self.answer(self.await_request())


def text(value):
    return value if isinstance(value, bytes) else value.encode('latin-1')


def integer(value, bits, first=0):
    """An integer as HPACK has it (RFC 7541 section 5.1)."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out = [first | most]
    value -= most
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out + [value])


def section(fields):
    """A field section of literals that touch no table, so that nothing between a script and the wire has an opinion."""
    out = b''
    for name, value in fields:
        name, value = text(name), text(value)
        out += b'\x00' + integer(len(name), 7) + name + integer(len(value), 7) + value
    return out


def scripts():
    import answers
    import faults
    return {**vars(answers), **vars(faults)}


class Play:
    """A script under way: a listener, and a thread for each connection."""

    def __init__(self, script, certificate):
        self.script = script
        self.certificate = certificate
        self.records = []
        self.failure = None
        self.threads = []
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.accepting = threading.Thread(target=self.accept)
        self.accepting.start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.settimeout(PATIENCE)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            record = []
            self.records.append(record)
            thread = threading.Thread(target=self.serve, args=(sock, record, len(self.records)))
            self.threads.append(thread)
            thread.start()

    def secured(self, sock, protocols):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.certificate)
        context.set_alpn_protocols(protocols)
        return context.wrap_socket(sock, server_side=True, suppress_ragged_eofs=False)

    def serve(self, sock, record, number):
        conn = Conn(sock, record)
        try:
            if self.certificate:
                # A script may say how many requests its first connection answers over HTTP/1.1.
                most = getattr(self.script, 'http1_answers', None) if number == 1 else None
                other = getattr(self.script, 'http1', None)
                sock = conn.sock = self.secured(sock, ['http/1.1'] if most or other else ['h2', 'http/1.1'])
                if other:
                    other(conn, number)
                    return
                if sock.selected_alpn_protocol() == 'http/1.1':
                    conn.http1(most)
                    return
            conn.preface()
            try:
                self.script(conn, number)
                conn.rest()
            except OSError as error:
                if isinstance(error, TimeoutError):
                    raise
                # The client has gone; what it said before is still to be read.
                conn.acknowledges = False
                while True:
                    conn.frame()
        except (Gone, BrokenPipeError, ConnectionResetError):
            pass
        except Exception as error:
            self.failure = repr(error)
        finally:
            sock.close()

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.accepting.join()
        for thread in self.threads:
            thread.join()
        self.listener.close()
        return {'failure': self.failure, 'connections': self.records}


def main():
    known = scripts()
    play = None
    for line in sys.stdin:
        name, *certificate = line.split() or ['']
        if name:
            play = Play(known[name], certificate)
            print(play.port, flush=True)
        else:
            print(json.dumps(play.end()), flush=True)


if __name__ == '__main__':
    # `from server import …` in the siblings must not load a second copy.
    sys.modules['server'] = sys.modules['__main__']
    main()
