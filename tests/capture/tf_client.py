# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's own capture client, with a list of workers: tf_client.py SERVER LOGDIR DURATION_MS WORKER[,WORKER...].

It asks the first of the list, by tensorflow.ProfileAnalysis, to profile all of them.
"""
import sys

from tensorflow.python.profiler import profiler_client

server, logdir, duration_ms, workers = sys.argv[1:]
profiler_client.trace(f"grpc://{server}", logdir, int(duration_ms), worker_list=workers, num_tracing_attempts=1)
