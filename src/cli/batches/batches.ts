// `headrace batches`: lists batches, shows the progress of one, and cancels it.
import { z } from "zod";
import { command, printRows } from "../command.ts";
import { requestList, understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatCount, formatRelative, formatTimeAndRelative } from "../terminal/figures.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";

const batch = z.object({
  id: z.string(),
  endpoint: z.string(),
  model: z.string().nullish(),
  status: z.string(),
  created_at: z.number(),
  expires_at: z.number(),
  completed_at: z.number().nullish(),
  request_counts: z.object({ total: z.number(), completed: z.number(), failed: z.number() }),
  usage: z.object({ input_tokens: z.number(), output_tokens: z.number() }),
  input_file_id: z.string(),
  output_file_id: z.string().nullish(),
  error_file_id: z.string().nullish(),
  errors: z.object({ data: z.array(z.object({ message: z.string(), line: z.number().nullish() })) }).nullish(),
});
type Batch = z.infer<typeof batch>;

const idArgument = ["<id>", "id of the batch, batch_… or msgbatch_…"] as const;
const pathOf = (id: string) => `/batches/${encodeURIComponent(id)}`;

const listCommand = serverCommand({
  name: "list",
  summary: "list the batches",
  description: "List the batches of the account with their progress, newest first.",
  options: { json: ["--json", "print all of them as the API gives them"] },
  examples: ["headrace batches list", "headrace batches list --json"],
  async run({ ask, connect, terminal, nowSeconds }) {
    const connection = await connect();
    const raw = await ask((_, signal) => requestList(connection, "/batches", signal));
    const show = () => {
      const found = raw.map((one) => understood(batch, one, connection, "list of batches"));
      if (found.length === 0) return terminal.note("There is no batch.");
      const now = nowSeconds();
      printRows(terminal, found, [
        ["ID", ({ id }) => id],
        ["STATUS", ({ status }) => status.replaceAll("_", " ")],
        ["DONE", progressOf],
        ["FAILED", ({ request_counts: { failed } }) => formatCount(failed)],
        ["ENDPOINT", ({ endpoint }) => endpoint],
        ["MODEL", ({ model }) => model ?? "-"],
        ["CREATED", (one) => formatRelative(one.created_at, now)],
      ]);
    };
    return { json: raw, show };
  },
});

const showCommand = serverCommand({
  name: "show",
  summary: "show the progress and the errors of a batch",
  description: "Show one batch: its progress, usage, files and invalid lines.",
  arguments: [idArgument],
  options: { json: ["--json", "print the batch as the API gives it"] },
  examples: ["headrace batches show batch_01a2"],
  async run({ request, connect, terminal, nowSeconds }, id) {
    const answer = await request(pathOf(id));
    const connection = await connect();
    const show = () => printBatch(terminal, understood(batch, answer, connection, "batch"), nowSeconds());
    return { json: answer, show };
  },
});

const cancelCommand = serverCommand({
  name: "cancel",
  summary: "cancel a batch",
  description: "Cancel a batch. Finished answers stay. Running requests are stopped and not charged.",
  arguments: [idArgument],
  options: { yes: ["-y, --yes", "do not ask"], json: ["--json", "print the batch as the API gives it"] },
  examples: ["headrace batches cancel batch_01a2 --yes"],
  async run({ request, connect, confirm, terminal }, id) {
    const before = understood(batch, await request(pathOf(id)), await connect(), "batch");
    await confirm({ question: `Cancel the batch ${printable(before.id)}, of which ${progressOf(before)} is done` });
    const answer = await request(`${pathOf(id)}/cancel`, { method: "POST" });
    const after = understood(batch, answer, await connect(), "batch");
    return { json: answer, show: () => terminal.print(`The batch ${printable(after.id)} is ${after.status}.`) };
  },
});

function printBatch(terminal: Terminal, found: Batch, nowSeconds: number): void {
  const { request_counts: counts, usage, errors } = found;
  const { dim } = terminal.out;
  const rows: [string, string][] = [
    ["Batch", found.id],
    ["Status", found.status.replaceAll("_", " ")],
    ["Requests", `${progressOf(found)}, ${formatCount(counts.failed)} failed`],
    ["Tokens", `${formatCount(usage.input_tokens)} in, ${formatCount(usage.output_tokens)} out`],
    ["Endpoint", found.endpoint],
    ["Model", found.model ?? "several, or not known yet"],
    ["Created", formatTimeAndRelative(found.created_at, nowSeconds)],
    ["Expires", formatTimeAndRelative(found.expires_at, nowSeconds)],
    ["Input", found.input_file_id],
    ["Output", found.output_file_id ?? "-"],
    ["Errors", found.error_file_id ?? "-"],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  for (const [name, value] of rows) terminal.print(`${dim(name.padEnd(width))}  ${printable(value)}`);
  for (const { line, message } of errors?.data ?? []) {
    terminal.print(`${line == null ? "The file" : `Line ${line}`}: ${printable(message)}`);
  }
}

/** Returns progress such as `120 of 500`. */
function progressOf({ request_counts: { total, completed, failed } }: Pick<Batch, "request_counts">): string {
  return `${formatCount(completed + failed)} of ${formatCount(total)}`;
}

export const batchesCommand = command({
  name: "batches",
  summary: "list batches and their progress",
  description:
    "List and cancel batches. Create a batch over the API, from a file of requests. Needs a key with the scope chat:read, and chat:write to cancel.",
  examples: ["headrace batches list", "headrace batches show batch_01a2", "headrace batches cancel batch_01a2"],
  commands: [listCommand, showCommand, cancelCommand],
});
