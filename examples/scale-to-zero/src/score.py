"""Says how long its process has been up."""

import time


def init():
    global begin
    begin = time.monotonic()


def run(data):
    return {"up_seconds": round(time.monotonic() - begin, 1)}
