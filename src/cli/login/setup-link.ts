// `headrace setup-link`: creates a link with which an operator sets up their sign-in. Anybody with access to the data
// directory may run the command.
import { loadDatabaseUrl, loadPublicUrl } from "../../config/config.ts";
import { makeSetupLink } from "../../maintenance/setup-link.ts";
import { command, dataDirOption } from "../command.ts";
import { formatTimeAndRelative } from "../terminal/figures.ts";
import { givenBaseUrl } from "./client.ts";

export const setupLinkCommand = command({
  name: "setup-link",
  summary: "make a link that creates an operator's account",
  description:
    "Make a link that creates an operator's account, in the database of the data directory. It works once, for 24 hours. Earlier links stop working.",
  options: {
    baseUrl: [
      "--base-url <url>",
      "where browsers reach the server (default: HEADRACE_PUBLIC_URL, public_url, or as in credentials.json)",
    ],
    ...dataDirOption,
    quiet: ["-q, --quiet", "print the link and nothing else"],
    json: ["--json", "print one JSON object: url, expires_at"],
  },
  examples: [
    "headrace setup-link",
    "headrace setup-link --data-dir /var/lib/headrace",
    "headrace setup-link --base-url https://ai.example.com/v1",
  ],
  help: [
    `The link is printed once, alone on standard output; everything else goes to
standard error. A server that runs accepts it at once. It also lets a person back
in who has lost the password: with the same address, it becomes theirs again.`,
  ],
  async run({ context, options, terminal, ...call }) {
    const nowSeconds = call.nowSeconds();
    const { url, expiresAt } = await makeSetupLink({
      dataDir: await context.dataDir(options.dataDir),
      databaseUrl: await loadDatabaseUrl(context.env),
      baseUrl: givenBaseUrl(options, {}) ?? (await loadPublicUrl({ env: context.env })),
      nowSeconds,
    });
    const show = () => {
      if (!options.quiet)
        terminal.note("The first person who opens this link becomes an operator of the installation:");
      terminal.print(terminal.out.bold(url));
      if (options.quiet) return;
      const until = formatTimeAndRelative(expiresAt, nowSeconds);
      terminal.note(
        terminal.err.dim(`It works once, until ${until}. It is shown only now, and ends those made before.`),
      );
    };
    return { json: { url, expires_at: expiresAt }, show };
  },
});
