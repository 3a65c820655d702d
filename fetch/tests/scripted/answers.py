"""Scripts of a server that does nothing wrong, or nothing that a client may blame it for."""

from hyperframe.frame import ContinuationFrame, DataFrame, PingFrame, PriorityFrame, WindowUpdateFrame

from server import section


def plain(conn, number):
    conn.settings()


def silence(conn, number):
    conn.settings()
    if number == 1:
        while True:
            conn.frame()


def no_streams(conn, number):
    """No request may be sent, and the one that came before it was known is refused; later one may."""
    conn.settings(MAX_CONCURRENT_STREAMS=0)
    stream = conn.await_request()
    while 'SETTINGS ACK' not in conn.record:
        conn.frame()
    conn.reset(stream, 'REFUSED_STREAM')
    before = len(conn.record)
    conn.ping()
    assert not any(frame.startswith('HEADERS') for frame in conn.record[before:]), conn.record
    conn.settings(MAX_CONCURRENT_STREAMS=1)


# ---- ends that leave the request alone (RFC 9113 section 6.8, 8.7)

def goaway_before_the_answer(conn, number):
    conn.settings()
    if number == 1:
        conn.await_request()
        conn.goaway(0)


def goaway_with_an_error_before_the_answer(conn, number):
    conn.settings()
    if number == 1:
        conn.await_request()
        conn.goaway(0, 'INTERNAL_ERROR')


def goaway_then_the_answer(conn, number):
    conn.settings()
    if number == 1:
        stream = conn.await_request()
        conn.goaway(stream)
        conn.answer(stream)


def goaway_in_two_steps(conn, number):
    conn.settings()
    if number == 1:
        stream = conn.await_request()
        conn.goaway(2**31 - 1)
        conn.goaway(stream)
        conn.answer(stream)


def goaway_at_once(conn, number):
    conn.settings()
    if number == 1:
        conn.goaway(0)


def refused(conn, number):
    conn.settings()
    if number == 1:
        conn.reset(conn.await_request(), 'REFUSED_STREAM')


def refused_three_times(conn, number):
    conn.settings()
    if number <= 3:
        conn.reset(conn.await_request(), 'REFUSED_STREAM')


def http_1_first(conn, number):
    conn.settings()


# The second request meets a connection that has just ended, and the next server speaks HTTP/2.
http_1_first.http1_answers = 1


# ---- the order of an answer (section 8.1)

def a_reset_after_the_answer(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.answer(stream)
    conn.reset(stream, 'NO_ERROR')


def an_answer_before_the_upload_and_a_reset(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.answer(stream, b'early')
    conn.reset(stream, 'NO_ERROR')


def interim_answers(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.head(stream, status='100')
    conn.head(stream, ('link', '</a>'), status='103')
    conn.head(stream, ('link', '</b>'), status='103')
    conn.answer(stream)


def trailers(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.head(stream)
    conn.data(stream, b'ok')
    conn.block(stream, section([('sum', '42')]), end=True)


def an_answer_without_a_body(conn, number):
    conn.settings()
    conn.head(conn.await_request(), end=True)


def empty_data(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.head(stream)
    conn.data(stream, b'')
    conn.data(stream, b'ok')
    conn.data(stream, b'')
    conn.data(stream, b'', end=True)


def no_content(conn, number):
    conn.settings()
    conn.head(conn.await_request(), status='204', end=True)


def no_content_ended_by_data(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.head(stream, status='204')
    conn.data(stream, b'', end=True)


def not_modified_with_a_length(conn, number):
    conn.settings()
    conn.head(conn.await_request(), ('content-length', '5'), status='304', end=True)


def a_head_with_a_length(conn, number):
    conn.settings()
    conn.head(conn.await_request(), ('content-length', '5'), end=True)


def the_right_length(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.head(stream, ('content-length', '2'))
    conn.data(stream, b'o')
    conn.data(stream, b'k', end=True)


def the_same_length_twice(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.head(stream, ('content-length', '2'), ('content-length', '2'))
    conn.data(stream, b'ok', end=True)


def bytes_beyond_ascii_in_a_value(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.head(stream, ('x-name', b'caf\xc3\xa9'), ('x-empty', ''))
    conn.data(stream, b'ok', end=True)


def an_unknown_status(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.head(stream, status='599')
    conn.data(stream, b'ok', end=True)


# ---- frames (sections 4, 6)

def unknown_frames_flags_and_settings(conn, number):
    conn.raw(4, 0xfe, 0, b'\xfa\xce\0\0\0\1')
    conn.raw(0xfa, 0xff, 0, b'whatever')
    stream = conn.await_request()
    conn.raw(0xfb, 0xff, stream, b'whatever')
    conn.raw(0xfc, 0, 7, b'')
    conn.raw(1, 0x4 | 0xd2, stream, section([(':status', '200')]))
    conn.raw(0, 0x1 | 0xf6, stream, b'ok')


def the_reserved_bit(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.raw(1, 0x4, stream | 1 << 31, section([(':status', '200')]))
    conn.raw(8, 0, stream | 1 << 31, (1 << 31 | 5).to_bytes(4, 'big'))
    conn.raw(0, 0x1, stream | 1 << 31, b'ok')


def padding(conn, number):
    conn.settings()
    stream = conn.await_request()
    block = section([(':status', '200')])
    conn.raw(1, 0x4 | 0x8 | 0x20, stream, bytes([3, 0, 0, 0, 0, 255]) + block + b'\0\0\0')
    conn.raw(0, 0x8, stream, b'\xff' + b'o' + b'\0' * 255)
    conn.raw(0, 0x9, stream, b'\0' + b'k')


def continuations(conn, number):
    conn.settings()
    stream = conn.await_request()
    block = section([(':status', '200'), ('x-long', 'y' * 300)])
    conn.block(stream, block[:1], complete=False)
    conn.block(stream, b'', kind=ContinuationFrame, complete=False)
    conn.block(stream, block[1:200], kind=ContinuationFrame, complete=False)
    conn.block(stream, block[200:], kind=ContinuationFrame)
    conn.data(stream, b'ok', end=True)


def a_head_that_ends_the_stream_and_goes_on(conn, number):
    conn.settings()
    stream = conn.await_request()
    block = section([(':status', '200'), ('x', 'y')])
    conn.block(stream, block[:5], end=True, complete=False)
    conn.block(stream, block[5:], kind=ContinuationFrame)


def the_largest_frame(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.head(stream)
    conn.data(stream, b'x' * 16384, end=True)


def a_ping(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.send(PingFrame(0, opaque_data=b'12345678'))
    answer = conn.await_frame(PingFrame)
    assert 'ACK' in answer.flags and answer.opaque_data == b'12345678', answer
    conn.answer(stream)


def settings_again(conn, number):
    conn.settings()
    stream = conn.await_request()
    for size in (100, 65535, 0, 4096):
        conn.settings(HEADER_TABLE_SIZE=size, MAX_FRAME_SIZE=20000)
    while conn.record.count('SETTINGS ACK') < 5:
        conn.frame()
    conn.answer(stream)
    # Of all sizes of the table the smallest is told, and the last (RFC 7541 section 4.2).
    conn.answer(conn.await_request())
    assert conn.request.data.startswith(b'\x20\x3f\xe1\x1f'), conn.request.data


def frames_for_streams_that_are_over(conn, number):
    conn.settings()
    stream = conn.await_request()
    conn.answer(stream)
    conn.send(WindowUpdateFrame(stream, window_increment=10))
    conn.reset(stream, 'NO_ERROR')
    conn.send(PriorityFrame(stream, depends_on=0, stream_weight=1))
    conn.send(PriorityFrame(9, depends_on=0, stream_weight=1))


def data_for_a_stream_that_was_cancelled(conn, number):
    """The client gives up on the first answer; what was on its way to it goes nowhere."""
    conn.settings()
    stream = conn.await_request()
    conn.head(stream)
    conn.data(stream, b'begun')
    while not conn.record[-1].startswith('RST_STREAM'):
        conn.frame()
    assert conn.record[-1] == f'RST_STREAM {stream} CANCEL', conn.record
    conn.data(stream, b'late')
    conn.block(stream, section([('sum', '42')]), end=True)


def a_small_window(conn, number):
    """The upload of ten octets behind the first exchange comes in pieces of four, and never a piece too many."""
    conn.settings(INITIAL_WINDOW_SIZE=4)
    conn.answer(conn.await_request())
    stream = conn.await_request()
    came = b''
    while len(came) < 10:
        frame = conn.await_frame(DataFrame)
        came += frame.data
        assert len(frame.data) <= 4, frame
        quiet(conn)
        if len(came) < 10:
            conn.send(WindowUpdateFrame(stream, window_increment=len(frame.data)))
    assert came == b'0123456789', came
    conn.answer(stream)


def a_window_below_zero(conn, number):
    """A window that shrinks below what was already sent: nothing more until it is above zero again."""
    conn.settings(INITIAL_WINDOW_SIZE=4)
    conn.answer(conn.await_request())
    stream = conn.await_request()
    came = conn.await_frame(DataFrame).data
    # Four were sent; now it is at four less than nothing, and four more make that nothing.
    conn.settings(INITIAL_WINDOW_SIZE=0)
    conn.send(WindowUpdateFrame(stream, window_increment=4))
    quiet(conn)
    conn.send(WindowUpdateFrame(stream, window_increment=6))
    while len(came) < 10:
        came += conn.await_frame(DataFrame).data
    assert came == b'0123456789', came
    conn.answer(stream)


def quiet(conn):
    """Sees that no DATA comes before the client answers a PING."""
    before = len(conn.record)
    conn.ping()
    assert not any(frame.startswith('DATA') for frame in conn.record[before:]), conn.record
