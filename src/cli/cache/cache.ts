// `headrace cache`: clears stored answers of the response cache.
import { command } from "../command.ts";
import { serverCommand } from "../login/server-command.ts";

const clearCommand = serverCommand({
  name: "clear",
  summary: "clear stored answers",
  description: "Clear stored answers of the response cache: all of them, or those of an account, a model or both.",
  options: {
    account: ["--account <id>", "only those of this account"],
    model: ["--model <id>", "only those of this model"],
    json: ["--json", "print what was cleared as JSON"],
  },
  examples: ["headrace cache clear", "headrace cache clear --model qwen3-8b"],
  async run({ request, options: { account, model }, terminal }) {
    const wanted = Object.entries({ account, model }).filter(([, value]) => value !== undefined) as [string, string][];
    const query = wanted.length === 0 ? "" : `?${new URLSearchParams(wanted)}`;
    const json = await request(`/admin/cache${query}`, { method: "DELETE" });
    return {
      json,
      show: () => terminal.print("The answers are cleared. The next equal request runs on the model again."),
    };
  },
});

export const cacheCommand = command({
  name: "cache",
  summary: "manage the response cache",
  description: "Manage the response cache: stored answers that repeat for equal requests.",
  commands: [clearCommand],
});
