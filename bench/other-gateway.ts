// Another gateway beside Headrace, as `--other` names it: already running, with the mock as its upstream.
import type { Target } from "./measure.ts";
import { processTree } from "./process-usage.ts";
import { UsageError } from "./usage-error.ts";
import { upstreamModel } from "./workload.ts";

export interface OtherGateway {
  name: string;
  hostname: string;
  port: number;
  /** The path of chat completions. */
  path: string;
  key: string;
  model: string;
  /** Undefined: its processor time and memory are not measured. */
  pid: number | undefined;
  headers: Record<string, string>;
}

const form = "--other must be <name>=<base URL>[,key=<key>][,model=<id>][,pid=<process>][,header=<name>:<value>]";
/** Names of targets that the benchmark itself has. */
const taken = ["direct", "nginx", "same", "renamed"];

/** Throws UsageError. */
export function readOther(text: string): OtherGateway {
  const [, name, address = "", rest = ""] = /^([a-z0-9._-]+)=([^,]+)(?:,(.*))?$/i.exec(text) ?? [];
  const url = URL.parse(address);
  if (name === undefined || url?.protocol !== "http:") throw new UsageError(`${form}, with an http URL (got ${text}).`);
  if (taken.includes(name)) throw new UsageError(`--other: the name ${name} is taken.`);
  const other: OtherGateway = {
    name,
    hostname: url.hostname,
    port: Number(url.port || 80),
    path: `${url.pathname.replace(/\/$/, "")}/chat/completions`,
    key: "unused",
    model: upstreamModel,
    pid: undefined,
    headers: {},
  };
  for (const part of rest === "" ? [] : rest.split(",")) set(other, part);
  return other;
}

export function targetOf({ name, pid, headers, ...other }: OtherGateway): Target {
  return {
    ...other,
    name,
    title: name,
    headers,
    pids: () => (pid === undefined ? [] : processTree(pid)),
    settleMs: 250,
  };
}

function set(other: OtherGateway, part: string): void {
  const [, name, value = ""] = /^(key|model|pid|header)=(.+)$/.exec(part) ?? [];
  if (name === "key" || name === "model") {
    other[name] = value;
  } else if (name === "pid" && /^\d+$/.test(value)) {
    other.pid = Number(value);
  } else if (name === "header" && value.includes(":")) {
    const colon = value.indexOf(":");
    other.headers[value.slice(0, colon).trim()] = value.slice(colon + 1).trim();
  } else {
    throw new UsageError(`${form} (got ${part}).`);
  }
}
