"""Scripts of a server that breaks a rule."""

from hyperframe.frame import ContinuationFrame, PingFrame, WindowUpdateFrame

from server import section

END_STREAM, END_HEADERS, PADDED = 0x1, 0x4, 0x8


def faulty(fault):
    """A script that breaks its rule on the first request of the first connection, and is good otherwise."""
    def script(conn, number):
        conn.settings()
        if number == 1:
            fault(conn, conn.await_request())
    return script


def fields(*fields, status='200'):
    return faulty(lambda conn, stream: conn.head(stream, *fields, status=status, end=True))


def body(*pieces, length=None, status='200'):
    """An answer whose pieces are not what its head says."""
    def fault(conn, stream):
        conn.head(stream, *([] if length is None else [('content-length', length)]), status=status)
        for piece in pieces:
            conn.data(stream, piece)
        conn.data(stream, b'', end=True)
    return faulty(fault)


def frame(kind, flags, stream, payload=b''):
    """A frame in place of an answer; on the stream of the request where it is said so."""
    return faulty(lambda conn, asked: conn.raw(kind, flags, asked if stream == 'asked' else stream, payload))


def block(payload):
    return frame(1, END_HEADERS | END_STREAM, 'asked', payload)


# ---- field sections that can be read and are malformed (RFC 9113 section 8.2, 8.3)

upper_case_name = fields(('X-Upper', '1'))
empty_name = fields(('', '1'))
name_with_a_space = fields(('x y', '1'))
name_with_a_colon = fields(('x:y', '1'))
name_with_a_control = fields(('x\x01', '1'))
name_beyond_ascii = fields((b'x\xff', '1'))
value_with_nul = fields(('x', 'a\0b'))
value_with_cr = fields(('x', 'a\rb'))
value_with_lf = fields(('x', 'a\nb: c'))
value_with_a_space_in_front = fields(('x', ' a'))
value_with_a_tab_behind = fields(('x', 'a\t'))
connection_field = fields(('connection', 'close'))
keep_alive_field = fields(('keep-alive', 'timeout=5'))
proxy_connection_field = fields(('proxy-connection', 'keep-alive'))
transfer_encoding_field = fields(('transfer-encoding', 'chunked'))
upgrade_field = fields(('upgrade', 'h2c'))
no_status = fields(('x', 'y'), status=None)
two_statuses = fields((':status', '200'))
unknown_pseudo_field = fields((':version', '2'))
pseudo_field_of_a_request = fields((':path', '/'))
pseudo_field_last = fields(('x', 'y'), (':status', '200'), status=None)
status_of_two_digits = fields(status='20')
status_of_four_digits = fields(status='2000')
status_with_letters = fields(status='2x0')
status_with_a_sign = fields(status='+20')
status_empty = fields(status='')
status_099 = fields(status='099')
status_000 = fields(status='000')
status_with_a_phrase = fields(status='200 OK')
status_101 = faulty(lambda conn, stream: conn.head(stream, status='101'))
interim_that_ends_the_stream = fields(status='103')
length_with_a_sign = fields(('content-length', '+0'))
length_in_words = fields(('content-length', 'none'))
length_empty = fields(('content-length', ''))
length_negative = fields(('content-length', '-1'))
length_too_large = fields(('content-length', '18446744073709551616'))
two_lengths = fields(('content-length', '0'), ('content-length', '1'))

# ---- messages (section 8.1)

short_of_its_length = body(b'four', length='5')
longer_than_its_length = body(b'six.six', length='5')
nothing_of_its_length = fields(('content-length', '5'))
no_content_with_data = body(b'more', status='204')
not_modified_with_data = body(b'more', status='304')
head_with_data = body(b'more')
data_first = faulty(lambda conn, stream: conn.data(stream, b'early', end=True))


@faulty
def data_after_an_interim_answer(conn, stream):
    conn.head(stream, status='103')
    conn.data(stream, b'early', end=True)


@faulty
def trailers_that_do_not_end(conn, stream):
    conn.head(stream)
    conn.block(stream, section([('sum', '42')]))


@faulty
def a_second_head(conn, stream):
    conn.head(stream)
    conn.head(stream)


@faulty
def pseudo_field_in_trailers(conn, stream):
    conn.head(stream)
    conn.data(stream, b'ok')
    conn.block(stream, section([(':status', '200')]), end=True)


@faulty
def upper_case_in_trailers(conn, stream):
    conn.head(stream)
    conn.block(stream, section([('Sum', '42')]), end=True)


@faulty
def trailers_before_all_content(conn, stream):
    conn.head(stream, ('content-length', '5'))
    conn.data(stream, b'four')
    conn.block(stream, section([('sum', '42')]), end=True)


@faulty
def interim_answers_without_end(conn, stream):
    for _ in range(100):
        conn.head(stream, status='103')


@faulty
def a_reset_instead_of_an_answer(conn, stream):
    conn.reset(stream, 'INTERNAL_ERROR')


@faulty
def a_reset_within_the_answer(conn, stream):
    conn.head(stream)
    conn.data(stream, b'begun')
    conn.reset(stream, 'CANCEL')


@faulty
def a_reset_without_an_error_instead_of_an_answer(conn, stream):
    conn.reset(stream, 'NO_ERROR')


@faulty
def http_1_required(conn, stream):
    conn.reset(stream, 'HTTP_1_1_REQUIRED')


@faulty
def http_1_required_of_all(conn, stream):
    conn.goaway(stream, 'HTTP_1_1_REQUIRED')
    ends(conn)


@faulty
def a_refusal_within_the_answer(conn, stream):
    conn.head(stream)
    conn.reset(stream, 'REFUSED_STREAM')


# ---- field sections that cannot be read (section 4.3)

block_of_index_zero = block(b'\x80')
block_beyond_the_table = block(b'\x88\xbe')
block_cut_off = block(section([(':status', '200')])[:-1])
block_with_a_large_integer = block(b'\x88\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f')
block_with_a_late_table_size = block(b'\x88\x20')
block_with_a_large_table_size = block(b'\x3f\xe2\x1f\x88')
block_with_bad_huffman_padding = block(b'\x88\x00\x81\x00\x01a')
block_with_huffman_end = block(b'\x88\x00\x84\xff\xff\xff\xff\x01a')
empty_block = block(b'')
block_that_explodes = block(b'\x88\x40\x01x\x7f\x81\x1e' + b'y' * 4000 + b'\xbe' * 500)


# ---- frames (section 4, 5, 6)

data_too_large = faulty(lambda conn, stream: (conn.head(stream), conn.raw(0, END_STREAM, stream, b'x' * 16385)))
head_too_large = frame(1, END_HEADERS, 'asked', b'x' * 16385)
unknown_frame_too_large = frame(0xfa, 0, 0, b'x' * 16385)
data_on_the_connection = frame(0, END_STREAM, 0, b'x')
data_on_an_idle_stream = frame(0, END_STREAM, 99, b'x')
data_on_a_servers_stream = frame(0, END_STREAM, 2, b'x')
head_on_the_connection = frame(1, END_HEADERS, 0, b'\x88')
head_on_an_idle_stream = frame(1, END_HEADERS | END_STREAM, 99, b'\x88')
head_on_a_servers_stream = frame(1, END_HEADERS | END_STREAM, 2, b'\x88')
reset_on_the_connection = frame(3, 0, 0, bytes(4))
reset_on_an_idle_stream = frame(3, 0, 99, bytes(4))
reset_too_short = frame(3, 0, 'asked', bytes(3))
reset_too_long = frame(3, 0, 'asked', bytes(5))
priority_too_short = frame(2, 0, 'asked', bytes(4))
priority_on_the_connection = frame(2, 0, 0, bytes(5))
push_promise = frame(5, END_HEADERS, 'asked', b'\0\0\0\2' + b'\x82\x86\x84')
push_promise_cut_off = frame(5, END_HEADERS, 'asked', b'\0\0')
ping_too_short = frame(6, 0, 0, bytes(7))
ping_too_long = frame(6, 0, 0, bytes(9))
ping_on_a_stream = frame(6, 0, 'asked', bytes(8))
goaway_too_short = frame(7, 0, 0, bytes(7))
goaway_on_a_stream = frame(7, 0, 'asked', bytes(8))
window_update_of_zero = frame(8, 0, 0, bytes(4))
window_update_of_zero_on_a_stream = frame(8, 0, 'asked', bytes(4))
window_update_too_short = frame(8, 0, 0, bytes(3))
window_update_on_an_idle_stream = frame(8, 0, 99, b'\0\0\0\1')
window_above_its_largest = frame(8, 0, 0, b'\x7f\xff\xff\xff')
window_of_a_stream_above_its_largest = frame(8, 0, 'asked', b'\x7f\xff\xff\xff')
continuation_of_nothing = frame(9, END_HEADERS, 'asked', b'\x88')
continuation_on_the_connection = frame(9, END_HEADERS, 0, b'\x88')
padding_as_long_as_its_frame = frame(0, PADDED, 'asked', b'\x05four')
padding_without_a_length = frame(0, PADDED, 'asked', b'')
padding_of_a_head_too_long = frame(1, PADDED | END_HEADERS, 'asked', b'\x05\x88')
priority_of_a_head_cut_off = frame(1, 0x20 | END_HEADERS, 'asked', b'\0\0')
head_that_depends_on_itself = faulty(lambda conn, stream: conn.raw(
    1, 0x20 | END_HEADERS | END_STREAM, stream, stream.to_bytes(4, 'big') + b'\0\x88'))


@faulty
def another_frame_in_a_header_block(conn, stream):
    conn.block(stream, b'\x88', complete=False)
    conn.send(PingFrame(0, opaque_data=bytes(8)))


@faulty
def an_unknown_frame_in_a_header_block(conn, stream):
    conn.block(stream, b'\x88', complete=False)
    conn.raw(0xfa, 0, 0)


@faulty
def continuation_of_another_stream(conn, stream):
    conn.block(stream, b'\x88', complete=False)
    conn.block(stream + 2, b'', kind=ContinuationFrame)


@faulty
def continuations_without_end(conn, stream):
    conn.block(stream, b'\x88', complete=False)
    for _ in range(1000):
        conn.block(stream, b'', kind=ContinuationFrame, complete=False)


@faulty
def pings_without_end(conn, stream):
    for _ in range(3000):
        conn.send(PingFrame(0, opaque_data=bytes(8)))


@faulty
def empty_data_without_end(conn, stream):
    conn.head(stream)
    for _ in range(3000):
        conn.data(stream, b'')


@faulty
def data_after_the_end(conn, stream):
    conn.head(stream)
    conn.data(stream, b'ok', end=True)
    conn.data(stream, b'more')


@faulty
def head_after_the_end(conn, stream):
    conn.answer(stream)
    conn.head(stream, end=True)


@faulty
def goaway_that_takes_back(conn, stream):
    conn.goaway(stream)
    conn.goaway(stream + 2)
    conn.answer(stream)


@faulty
def goaway_with_an_error_and_no_answer(conn, stream):
    conn.goaway(stream, 'ENHANCE_YOUR_CALM')
    conn.sock.shutdown(1)


# ---- settings (section 6.5)

def setting(id, value):
    return frame(4, 0, 0, id.to_bytes(2, 'big') + value.to_bytes(4, 'big'))


settings_with_push = setting(2, 1)
settings_with_half_a_push = setting(2, 2)
settings_with_a_large_window = setting(4, 2**31)
settings_with_small_frames = setting(5, 16383)
settings_with_large_frames = setting(5, 2**24)
settings_with_half_a_connect = setting(8, 2)
settings_too_short = frame(4, 0, 0, bytes(5))
settings_on_a_stream = frame(4, 0, 'asked')
settings_acknowledged_with_more = frame(4, 1, 0, bytes(6))


@faulty
def settings_that_overflow_a_window(conn, stream):
    conn.send(WindowUpdateFrame(stream, window_increment=2**31 - 1 - 65535))
    conn.settings(INITIAL_WINDOW_SIZE=80000)


@faulty
def settings_without_end(conn, stream):
    for _ in range(3000):
        conn.settings()


# ---- the beginning and the end of a connection (section 3.4)

def no_settings(conn, number):
    if number > 1:
        conn.settings()
        return
    conn.answer(conn.await_request())


def begins_with(payload):
    """A script whose first connection begins with this in place of SETTINGS, and ends."""
    def script(conn, number):
        if number > 1:
            conn.settings()
            return
        conn.await_request()
        conn.sock.sendall(payload)
        ends(conn)
    return script


acknowledgement_first = begins_with(b'\0\0\0\4\1\0\0\0\0')
http_1_in_answer = begins_with(b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
tls_in_answer = begins_with(b'\x15\x03\x01\x00\x02\x02\x46')


def ends(conn):
    conn.sock.shutdown(1)


@faulty
def the_end_instead_of_an_answer(conn, stream):
    ends(conn)


@faulty
def the_end_behind_the_head(conn, stream):
    conn.head(stream)
    ends(conn)


@faulty
def the_end_within_the_body(conn, stream):
    conn.head(stream, ('content-length', '5'))
    conn.data(stream, b'four')
    ends(conn)


@faulty
def the_end_within_a_frame(conn, stream):
    conn.head(stream)
    conn.sock.sendall(b'\0\0\5\0\1\0\0\0\1four')
    ends(conn)


@faulty
def the_end_behind_an_interim_answer(conn, stream):
    conn.head(stream, status='103')
    ends(conn)


# ---- TLS that ends without a word (RFC 8446 section 6.1): whoever cut it could have cut anywhere

def plain_answer(head, farewell):
    """The first connection answers so over HTTP/1.1 and ends, with a `close_notify` or without one."""
    def script(conn, number):
        conn.settings()

    def http1(conn, number):
        while b'\r\n\r\n' not in conn.buffer:
            conn.fill(len(conn.buffer) + 1)
        conn.sock.sendall(head if number == 1 else b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        if farewell or number > 1:
            conn.sock.unwrap()

    script.http1 = http1
    return script


until_the_end = plain_answer(b'HTTP/1.1 200 OK\r\n\r\nok', True)
until_a_cut = plain_answer(b'HTTP/1.1 200 OK\r\n\r\nok', False)
whole_before_a_cut = plain_answer(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', False)
chunks_before_a_cut = plain_answer(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n', False)
