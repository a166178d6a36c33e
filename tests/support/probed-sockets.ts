// The sockets of this machine that probe a silent peer, as Linux lists them.
import { readFileSync } from "node:fs";

/** The list's code of an established connection, and of a timer of probes. */
const [established, probes] = ["01", "02"];

/** The ends with this port, own or the peer's, that probe their peer. */
export function probedEnds(port: number): { own: boolean; peers: boolean } {
  const hex = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const ends = readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , timer = ""]) => state === established && timer.startsWith(`${probes}:`));
  return {
    own: ends.some(([, local = ""]) => local.endsWith(hex)),
    peers: ends.some(([, , remote = ""]) => remote.endsWith(hex)),
  };
}
