// A host of documents of clients on loopback, over TLS, with a certificate that a test lets the server trust.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface DocumentHost extends Disposable {
  /** `https://client.example:…`. */
  origin: string;
  /** Its certificate (PEM), to be trusted in place of the well-known ones. */
  ca: string;
  /** Leads its name here. */
  resolve(name: string): Promise<string[]>;
  /** Paths that were asked for, in order. */
  asked: string[];
  /** By path. */
  answers: Map<string, () => Response | Promise<Response>>;
  /** Has a right document at `path`, but for `changes`; gives its address. */
  document(path: string, changes?: Record<string, unknown>, headers?: Record<string, string>): string;
}

const name = "client.example";

export function startDocumentHost(): DocumentHost {
  const directory = mkdtempSync(join(tmpdir(), "headrace-documents-"));
  const [key, cert] = [join(directory, "key"), join(directory, "pem")];
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const made = Bun.spawnSync(["openssl", "req", "-x509", ...kind, "-keyout", key, "-out", cert, ...subject]);
  if (!made.success) throw new Error(made.stderr.toString());
  const tls = { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  rmSync(directory, { recursive: true });
  const asked: string[] = [];
  const answers: DocumentHost["answers"] = new Map();
  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0, tls },
    fetch(request) {
      const { pathname } = new URL(request.url);
      asked.push(pathname);
      return answers.get(pathname)?.() ?? new Response("", { status: 404 });
    },
  });
  const origin = `https://${name}:${server.port}`;
  return {
    ...{ origin, ca: tls.cert, asked, answers },
    async resolve(wanted) {
      return wanted === name ? ["127.0.0.1"] : [];
    },
    document(path, changes = {}, headers = {}) {
      const url = `${origin}${path}`;
      const body = { client_id: url, client_name: "Cli", redirect_uris: ["http://127.0.0.1/callback"], ...changes };
      answers.set(path, () => Response.json(body, { headers }));
      return url;
    },
    [Symbol.dispose]() {
      void server.stop(true);
    },
  };
}
