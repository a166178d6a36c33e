// `headrace cache`: answers that are kept to be given again are forgotten.
import { command } from "../command.ts";
import { serverCommand } from "../login/server-command.ts";

const clearCommand = serverCommand({
  name: "clear",
  summary: "forget answers that are kept",
  description: "Forget answers that are kept to be given again: all of them, or those of an account, a model or both.",
  options: {
    account: ["--account <id>", "only those of this account"],
    model: ["--model <id>", "only those of this model"],
    json: ["--json", "print what was forgotten as JSON"],
  },
  examples: ["headrace cache clear", "headrace cache clear --model qwen3-8b"],
  async run({ request, options: { account, model }, terminal }) {
    const wanted = Object.entries({ account, model }).filter(([, value]) => value !== undefined) as [string, string][];
    const query = wanted.length === 0 ? "" : `?${new URLSearchParams(wanted)}`;
    const json = await request(`/admin/cache${query}`, { method: "DELETE" });
    return { json, show: () => terminal.print("They are forgotten, and made anew once they are asked for.") };
  },
});

export const cacheCommand = command({
  name: "cache",
  summary: "answers that are kept to be given again",
  description: "Answers that are kept to be given again to who asks the same.",
  commands: [clearCommand],
});
