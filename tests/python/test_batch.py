# SPDX-License-Identifier: Apache-2.0
"""`convert` with executors: processes, and Dask's where it is installed (tests/slow.sh python).  On a PostgreSQL of the test's own."""
import concurrent.futures
import contextlib
import glob
import importlib.util
import os
import tempfile

import xplaned
from measure import Database, make_session

HOSTS = 6


@contextlib.contextmanager
def sessions(place):
    """A database, and a session of six hosts, one of which is damaged; gives arguments of `convert`."""
    if not glob.glob("/usr/lib/postgresql/*/bin/initdb"):
        place.skip("no server of PostgreSQL in /usr/lib/postgresql")
    with tempfile.TemporaryDirectory(prefix="xplaned-batch-") as work:
        logdir = place.scratch / f"batch-{len(work)}-{work[-4:]}"
        make_session(logdir, HOSTS)
        damaged = next(logdir.rglob("*h00002.xplane.pb"))
        damaged.write_bytes(b"\x0a\xff\xff\xff\xff\x7f" * 9)
        os.utime(damaged, (1700000000, 1700000000))
        db = Database(work)
        try:
            yield {"store": db.url, "logdir": logdir, "shards": 3, "xplaned": place.xplaned,
                   "args": ["--workers", "1", "--state-dir", work + "/state"]}
        finally:
            db.stop()


def check(done, again=False):
    assert (done.hosts, done.done) == (HOSTS, HOSTS - 1) and (done.products_made == 0) == again, done
    assert done.products_made % (HOSTS - 1) == 0, done  # of each the same
    assert not done and [(h.session, h.host) for h in done.left] == [("run", "h00002")] and "xplane" in done.left[0].why, done


def convert_in_processes(place):
    """What one process stored is not made by another; a task that fails raises here what it raised there."""
    with sessions(place) as how, concurrent.futures.ProcessPoolExecutor(2) as executor:
        check(xplaned.convert("run", executor=executor, **how))
        check(xplaned.convert(["run"], **how), again=True)
        try:
            xplaned.convert("no_such_run", executor=executor, **how)
        except xplaned.Error as e:
            assert 'no session "no_such_run"' in e.message, e
        else:
            raise AssertionError("a session that is not there was converted")


def convert_by_dask(place):
    if importlib.util.find_spec("distributed") is None:
        place.skip("no distributed")
    import distributed
    with sessions(place) as how, distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster, \
            distributed.Client(cluster) as client:
        check(xplaned.convert("run", executor=client.get_executor(), **how))


TESTS = [convert_in_processes, convert_by_dask]
