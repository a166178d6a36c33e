// A line before each request on a Unix domain socket, which names the client's address. Clients cannot set it.
import { HeadError } from "./head.ts";

const start = "PEER ";
/** The most characters of the line. Any IP address with a zone is shorter. */
export const maxPeerLineLength = 128;

/** Returns the line for the address `peer`. */
export function peerLine(peer: string): string {
  return `${start}${peer}\r\n`;
}

/** Returns the address in a line. Throws a HeadError (400) for an invalid line. */
export function readPeerLine(line: string): string {
  if (!line.startsWith(start) || !/^[!-~]+$/.test(line.slice(start.length))) throw noPeerLine();
  return line.slice(start.length);
}

export function noPeerLine(): HeadError {
  return new HeadError(
    400,
    "A request over this socket must begin with the line PEER, one space, address of the client.",
  );
}
