// Turns on TCP keep-alive probes for silent connections, such as those that wait for a long answer.
import type { Socket } from "bun";

/** Milliseconds of silence before the first probe. NAT gateways and load balancers forget silent connections after 240 s. */
const probeAfterMs = 60_000;

/**
 * Lets the operating system probe a silent peer. The probes keep the connection known to the network, and end it if the
 * peer is lost.
 */
export function probePeer(socket: Pick<Socket, "setKeepAlive">): void {
  socket.setKeepAlive(true, probeAfterMs);
}
