// A machine behind a router that translates addresses, in network namespaces: it reaches out, nobody reaches it.
import { spawnSync } from "node:child_process";

export interface NattedNetwork {
  /** The address of this machine at which the one behind the router reaches it. */
  outsideAddress: string;
  /** The words before a command that runs it behind the router. */
  inside: readonly string[];
  /** Takes the router's link to the outside away: what is on its way is lost, and nobody is told. */
  cut(): void;
  mend(): void;
  [Symbol.dispose](): void;
}

/** Why no such network can be made here; undefined where it can. */
export function noNetworkReason(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "network namespaces need root on Linux";
  const name = `hrtry${process.pid}`;
  try {
    run(["ip", "netns", "add", name]);
  } catch (error) {
    return `no network namespace can be made: ${String(error)}`;
  }
  try {
    run(["ip", "netns", "exec", name, "nft", "add table ip nat"]);
    return undefined;
  } catch (error) {
    return `no address translation: ${String(error)}`;
  } finally {
    run(["ip", "netns", "del", name]);
  }
}

/** Names and addresses follow from the process id, so that several can be there at once. */
export function makeNattedNetwork(): NattedNetwork {
  const { pid } = process;
  const router = `hrr${pid}`;
  const machine = `hrm${pid}`;
  const link = `hro${pid}`;
  const third = pid % 250;
  const outsideAddress = `10.213.${third}.1`;
  const inNetwork = (name: string, command: readonly string[]) => run(["ip", "netns", "exec", name, ...command]);
  const network: NattedNetwork = {
    outsideAddress,
    inside: ["ip", "netns", "exec", machine],
    cut: () => inNetwork(router, ["ip", "link", "set", "outside", "down"]),
    mend() {
      inNetwork(router, ["ip", "link", "set", "outside", "up"]);
      // A link that goes down takes its routes along.
      inNetwork(router, ["ip", "route", "replace", `10.213.${third}.0/30`, "dev", "outside"]);
    },
    [Symbol.dispose]() {
      for (const name of [machine, router]) spawnSync("ip", ["netns", "del", name]);
      spawnSync("ip", ["link", "del", link]);
    },
  };
  try {
    for (const name of [router, machine]) {
      run(["ip", "netns", "add", name]);
      inNetwork(name, ["ip", "link", "set", "lo", "up"]);
    }
    run(["ip", "link", "add", link, "type", "veth", "peer", "name", "outside", "netns", router]);
    run(["ip", "address", "add", `${outsideAddress}/30`, "dev", link]);
    run(["ip", "link", "set", link, "up"]);
    inNetwork(router, ["ip", "address", "add", `10.213.${third}.2/30`, "dev", "outside"]);
    inNetwork(router, ["ip", "link", "set", "outside", "up"]);
    run(["ip", "-n", router, "link", "add", "inside", "type", "veth", "peer", "name", "eth0", "netns", machine]);
    // Nobody outside of the router has a route to these addresses.
    inNetwork(router, ["ip", "address", "add", "192.168.213.1/24", "dev", "inside"]);
    inNetwork(router, ["ip", "link", "set", "inside", "up"]);
    inNetwork(machine, ["ip", "address", "add", "192.168.213.2/24", "dev", "eth0"]);
    inNetwork(machine, ["ip", "link", "set", "eth0", "up"]);
    inNetwork(machine, ["ip", "route", "add", "default", "via", "192.168.213.1"]);
    inNetwork(router, ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
    for (const rule of [
      "add table ip nat",
      "add chain ip nat out { type nat hook postrouting priority 100; }",
      'add rule ip nat out oifname "outside" masquerade',
      "add table ip guard",
      "add chain ip guard through { type filter hook forward priority 0; policy drop; }",
      "add rule ip guard through ct state established,related accept",
      'add rule ip guard through iifname "inside" accept',
    ]) {
      inNetwork(router, ["nft", rule]);
    }
    return network;
  } catch (error) {
    network[Symbol.dispose]();
    throw error;
  }
}

function run(command: readonly string[]): void {
  const [program = "", ...args] = command;
  const { status, stderr, error } = spawnSync(program, args, { encoding: "utf8", timeout: 10_000 });
  if (status === 0) return;
  throw new Error(`${command.join(" ")}: ${error?.message ?? (stderr.trim() || `exit code ${status}`)}`);
}
