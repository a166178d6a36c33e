// Has the compiler compare data with types that others publish: of a literal, members that a type has not are errors.
import { mkdtemp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { deployTools } from "../../scripts/test-programs.mjs";
import { root, run } from "./tools.ts";

/** Types have enumerations where JSON has their values. */
const plain = `
type Plain<T> = T extends string ? \`\${T}\` : T extends number ? (\`\${T}\` extends \`\${infer N extends number}\` ? N : T)
  : T extends readonly (infer I)[] ? Plain<I>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
`;

/** What the compiler says against `value` as a `Checked`, a type that `types` declares, line by line. */
export async function typeErrors(types: string, value: unknown): Promise<string[]> {
  // Beside the types, so that they are found.
  const directory = await mkdtemp(join(dirname(deployTools.types), "typed-"));
  try {
    const file = join(directory, "checked.ts");
    await Bun.write(
      file,
      `${types}${plain}export const checked: Plain<Checked> = ${JSON.stringify(value, null, 1)};\n`,
    );
    const options = [
      "--strict",
      "--skipLibCheck",
      "--moduleResolution",
      "bundler",
      "--module",
      "esnext",
      "--pretty",
      "false",
    ];
    const compiler = join(root, "node_modules", ".bin", "tsc");
    const { code, stdout } = await run([compiler, "--noEmit", ...options, "--ignoreConfig", file], { cwd: directory });
    const said = stdout.split("\n").filter((line) => line !== "");
    if ((code === 0) !== (said.length === 0)) throw new Error(`tsc ended with ${code}, and said: ${stdout}`);
    return said;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
