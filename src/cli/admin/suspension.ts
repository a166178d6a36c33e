// The commands `suspend` and `resume` for keys, people and apps. A suspension blocks at once, and `resume` ends it.
import { z } from "zod";
import type { CommandEntry } from "../command.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { printable } from "../terminal/terminal.ts";

type Verb = "suspend" | "resume";

/** A person has no status. */
const suspendable = z.object({ status: z.string().optional() });

interface SuspensionFields<Name extends string, Options extends Readonly<Record<string, readonly [string, string]>>> {
  /** The group of the commands, such as `people`. */
  group: string;
  argument: readonly [name: Name, description: string];
  options?: Options;
  example: string;
  /** The object of the help sentence "Refuse … within a second": what a suspension blocks. */
  refuses: string;
  /** The sentence of the help that says which key the commands need. */
  needs: string;
  /** Returns the API path of the key, person or app, and its name to print. */
  find(
    call: ServerCall<{ [Each in keyof Options]?: string }>,
    which: string,
    verb: Verb,
  ): Promise<{ path: string; name: string }>;
}

/** Returns the commands `suspend` and `resume` of a group. */
export function suspensionCommands<
  Name extends string,
  Options extends Readonly<Record<string, readonly [string, string]>> = Record<never, never>,
>(fields: SuspensionFields<Name, Options>): CommandEntry[] {
  const { group, argument, options, example, refuses, needs, find } = fields;
  const make = (name: Verb, summary: string, description: string, outcome: string) => {
    const expected = name === "suspend" ? "suspended" : "active";
    return serverCommand({
      name,
      summary,
      description: `${description} ${needs}`,
      arguments: [argument],
      options: { ...options, json: ["--json", "print what the API gives"] },
      examples: [`headrace ${group} ${name} ${example}`],
      async run(call, which) {
        const found = await find(call as never, which as string, name);
        const answer = await call.request(`${found.path}/${name}`, { method: "POST" });
        // A key that has ended stays as it is, and a key of a suspended person stays suspended.
        const { status = expected } = suspendable.parse(answer);
        const result = status === expected ? outcome : `is ${status}.`;
        return { json: answer, show: () => call.terminal.print(`${printable(found.name)} ${result}`) };
      },
    });
  };
  return [
    make(
      "suspend",
      "block at once, until resumed",
      `Refuse ${refuses} within a second. Nothing is deleted.`,
      "is suspended.",
    ),
    make("resume", "end a suspension", "End a suspension.", "works again."),
  ];
}
