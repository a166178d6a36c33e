// What a connection stands between, for tests that move its clock and its kernel by hand: a server, and a socket.
import { systemClock } from "../../../src/base/clock.ts";
import type { ConnectionServer, ConnectionSocket } from "../../../src/http1/server/connection.ts";
import { defaultLimits } from "../../../src/http1/server/server-limits.ts";

/** Answers nothing by itself, and throws what it is told of as a fault. */
export function connectionServer(changes: Partial<ConnectionServer>): ConnectionServer {
  return {
    limits: defaultLimits(),
    clock: systemClock,
    leaving: false,
    stopping: false,
    reportsPeers: false,
    onRequest() {},
    onMalformed: () => ({ headers: {}, body: "" }),
    onFault(error) {
      throw error;
    },
    requestBegan() {},
    requestEnded() {},
    handOver() {},
    discards: () => true,
    ...changes,
  };
}

/** Takes all that is written, and brings nothing. */
export const idleSocket: ConnectionSocket = {
  remoteAddress: "127.0.0.1",
  write: (_bytes, _offset, length) => length,
  pause() {},
  resume() {},
  shutdown() {},
  end() {},
  terminate() {},
};
