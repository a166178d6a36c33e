// `headrace keys schedule`: shows or sets how often a key, or each key of the account, is rotated.
import { InvalidArgumentError } from "commander";
import { z } from "zod";
import { understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatTimeAndRelative, parseSpan } from "../terminal/figures.ts";
import { CliError, exitCodes, printable } from "../terminal/terminal.ts";
import { parseOverlap } from "./key-changes.ts";
import { findKey, keyPath, readKeyArgument } from "./key-records.ts";

const schedule = z.object({
  every_days: z.number().nullable(),
  overlap_seconds: z.number().nullable(),
  set_for: z.string().nullish(),
  next_at: z.number().nullish(),
  is_due: z.boolean().optional(),
});

const daySeconds = 86_400;

export const scheduleCommand = serverCommand({
  name: "schedule",
  summary: "rotate a key, or all keys of the account, on a schedule",
  description: "Show or set how often a key is rotated. Without a key: each key of the account.",
  arguments: [["[key]", "the key's name, id or last four characters (default: all keys of the account)"]],
  options: {
    every: ["--every <span>", "rotate a key that is this old, in days such as 90d", parseDays],
    overlap: ["--overlap <span>", "how long the old key works from then on, such as 7d (default: 24h)", parseOverlap],
    off: ["--off", "remove the schedule"],
    json: ["--json", "print the schedule as the API gives it"],
  },
  examples: [
    "headrace keys schedule ci --every 90d --overlap 7d",
    "headrace keys schedule --every 180d",
    "headrace keys schedule ci --off",
  ],
  help: [
    `When a rotation is due, owners are notified (key.rotation_due), and the old key
ends after the overlap, even if nobody has fetched the new one. Fetch the new
key once with: headrace keys rotate <key>.
The schedule of the account is for its owners and admins (headrace login).`,
  ],
  async run({ connect, ask, request, context, options, terminal, nowSeconds }, wanted) {
    const { every, overlap, off } = options;
    if (off ? every !== undefined || overlap !== undefined : overlap !== undefined && every === undefined) {
      throw new CliError("Give --every, with or without --overlap; or --off alone.", exitCodes.usage);
    }
    const connection = await connect();
    const name = wanted === undefined ? undefined : await readKeyArgument(wanted, context.input, options);
    const key = name === undefined ? undefined : (await ask((_, signal) => findKey(connection, name, signal))).key;
    const path = key ? `${keyPath(key.id)}/rotation` : "/account/key-rotation";
    const body = { every_days: every, ...(overlap === undefined ? {} : { overlap_seconds: overlap }) };
    const answer = await (every === undefined
      ? request(path, { method: off ? "DELETE" : "GET" })
      : request(path, { method: "PUT", body }));
    const found = understood(schedule, answer, connection, "schedule");
    const what = key ? `Key "${printable(key.name)}"` : "Each key of the account";
    const show = () => {
      const { every_days: days, overlap_seconds: seconds, next_at: next, is_due: isDue, set_for: from } = found;
      if (isDue) terminal.print(`${what} is to be replaced: headrace keys rotate ${key?.id ?? ""}`);
      if (days === null) terminal.print(`${key ? what : "The account"} has no rotation schedule.`);
      else terminal.print(`${what} is rotated every ${days} days, with an overlap of ${(seconds ?? 0) / 3_600} hours.`);
      if (from === "account") terminal.print("The schedule of the account applies.");
      if (next != null) terminal.print(`Next rotation: ${formatTimeAndRelative(next, nowSeconds())}`);
    };
    return { json: answer, show };
  },
});

function parseDays(text: string): number {
  const seconds = parseSpan(text);
  if (seconds !== undefined && seconds > 0 && seconds % daySeconds === 0) return seconds / daySeconds;
  throw new InvalidArgumentError("Give whole days, such as 90d.");
}
