# The server of llama.cpp, as a program with the arguments that its own llama-server documents.
import argparse
import threading

import xllamacpp

arguments = argparse.ArgumentParser(allow_abbrev=False)
arguments.add_argument("-m", "--model", required=True)
arguments.add_argument("-a", "--alias", required=True)
arguments.add_argument("--host", default="127.0.0.1")
arguments.add_argument("--port", type=int, default=8080)
arguments.add_argument("-c", "--ctx-size", type=int, default=0)
arguments.add_argument("-np", "--parallel", type=int, default=-1)
arguments.add_argument("-t", "--threads", type=int, default=-1)
arguments.add_argument("-md", "--model-draft")
arguments.add_argument("-mm", "--mmproj")
arguments.add_argument("--spec-type", choices=["draft-simple"])
arguments.add_argument("--temp", type=float)
given = arguments.parse_args()

params = xllamacpp.CommonParams()
params.model.path = given.model
params.model_alias = {given.alias}
params.hostnames = [given.host]
params.port = given.port
params.n_ctx = given.ctx_size
params.n_parallel = given.parallel
params.cpuparams.n_threads = 1
if given.temp is not None:
    params.sampling.temp = given.temp
if given.model_draft:
    params.speculative.draft.mparams.path = given.model_draft
if given.spec_type == "draft-simple":
    params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
if given.mmproj:
    params.mmproj.path = given.mmproj
server = xllamacpp.Server(params)
threading.Event().wait()
