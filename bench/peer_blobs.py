"""Moves blobs with the client that Azure's own users have, against whatever speaks its dialect.

Usage: peer_blobs.py CONTAINER_URL_WITH_SAS up|down one|many
       peer_blobs.py azurite:HOST:PORT up|down one|many
One blob of 1 GiB by four connections, or 10,000 of 10 KiB by eight threads. Prints seconds.
"""

import io
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from azure.storage.blob import BlobServiceClient, ContainerClient

GIB, SMALL, COUNT = 1 << 30, 10 << 10, 10_000
# The well-known account of the emulator, the same on every machine.
EMULATOR = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;BlobEndpoint=http://{}/devstoreaccount1;"


class Pattern(io.RawIOBase):
    """A gibibyte that costs nothing to make."""

    piece = bytes(range(256)) * 4096

    def __init__(self):
        self.left = GIB

    def readable(self):
        return True

    def read(self, size=-1):
        size = min(self.left, len(self.piece) if size < 0 else size)
        self.left -= size
        return (self.piece * (size // len(self.piece) + 1))[:size]


def container(where):
    if where.startswith("azurite:"):
        found = BlobServiceClient.from_connection_string(EMULATOR.format(where.split(":", 1)[1])).get_container_client("bench")
        if not found.exists():
            found.create_container()
        return found
    return ContainerClient.from_container_url(where)


def main(where, way, what):
    store = container(where)
    begin = time.perf_counter()
    if (way, what) == ("up", "one"):
        store.upload_blob("one", Pattern(), length=GIB, max_concurrency=4, overwrite=True)
    elif what == "one":
        got = 0
        for chunk in store.get_blob_client("one").download_blob(max_concurrency=4).chunks():
            got += len(chunk)
        assert got == GIB, got
    else:
        body = bytes(SMALL)

        def move(n):
            if way == "up":
                store.upload_blob(f"many/{n}", body, overwrite=True)
            else:
                assert len(store.download_blob(f"many/{n}").readall()) == SMALL

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(move, range(COUNT)))
    print(f"{time.perf_counter() - begin:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
