// `headrace operator-key` as a process of its own, beside a server of the test.
import { join } from "node:path";

const main = join(import.meta.dir, "..", "..", "src", "main.ts");

/** The secret of a new operator key. */
export async function makeOperatorKey(
  dataDir: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const command = [process.execPath, main, "operator-key", "--quiet", "--data-dir", dataDir, ...args];
  const child = Bun.spawn(command, {
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env["PATH"] ?? "", ...env },
  });
  const texts = [child.stdout, child.stderr].map((stream) => new Response(stream).text());
  const [stdout = "", stderr = ""] = await Promise.all(texts);
  const code = await child.exited;
  if (code !== 0) throw new Error(`headrace operator-key ended with ${code}: ${stderr}`);
  return stdout.trim();
}
