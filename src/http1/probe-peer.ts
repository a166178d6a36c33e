// The probes of silent TCP connections, such as those that wait for a long answer.
import type { Socket } from "bun";

/** Milliseconds of silence before the first probe. NAT gateways and load balancers forget silent connections after 240 s. */
const probeAfterMs = 60_000;

/** Lets the system probe a silent peer, so that the network keeps the connection, and a lost peer ends it. */
export function probePeer(socket: Pick<Socket, "setKeepAlive">): void {
  socket.setKeepAlive(true, probeAfterMs);
}
