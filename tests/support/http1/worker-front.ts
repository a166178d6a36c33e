// A server as it is, and the same behind a worker that hands all of its requests over to it: for tests that compare the two.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PassableRequest, Reply } from "../../../src/http1/message.ts";
import { type Http1Server, startHttp1Server } from "../../../src/http1/server/server.ts";
import type { Http1Limits } from "../../../src/http1/server/server-limits.ts";
import { HandOver } from "../../../src/workers/hand-over.ts";

export type Handler = (request: PassableRequest, reply: Reply) => void;

export interface WorkerFront extends AsyncDisposable {
  /** The worker's. */
  url: string;
  worker: Http1Server;
  primary: Http1Server;
  handOver: HandOver;
  socketPath: string;
  /** Whatever either server was told went wrong in it. */
  faults: unknown[];
}

/** `readsFirst`: the most that the worker reads of each body before it hands the request over; left out: nothing. */
export function startWorkerFront(
  onRequest: Handler,
  { limits = {}, readsFirst }: { limits?: Partial<Http1Limits>; readsFirst?: number } = {},
): WorkerFront {
  const directory = mkdtempSync(join(tmpdir(), "headrace-worker-"));
  const socketPath = join(directory, "primary.sock");
  const faults: unknown[] = [];
  const common = {
    limits,
    onMalformed: ({ reason }: { reason: string }) => ({ headers: { "content-type": "text/plain" }, body: reason }),
    onFault: (error: unknown) => void faults.push(error),
  };
  const primary = startHttp1Server({ ...common, unix: socketPath, onRequest });
  const handOver = new HandOver({
    socketPath,
    maxConnections: 5_000,
    unreachable: () => ({ status: 503, headers: { "retry-after": 1 }, body: "The primary is away." }),
  });
  const worker = startHttp1Server({
    ...common,
    hostname: "127.0.0.1",
    port: 0,
    onRequest(request, reply) {
      if (readsFirst === undefined) handOver.pass(request, reply);
      else void Promise.resolve(request.readBody(readsFirst)).then((body) => handOver.pass(request, reply, body));
    },
  });
  return {
    url: `http://127.0.0.1:${worker.port}`,
    ...{ worker, primary, handOver, socketPath, faults },
    [Symbol.asyncDispose]: async () => {
      worker.close();
      handOver.close();
      primary.close();
      rmSync(directory, { recursive: true });
    },
  };
}
