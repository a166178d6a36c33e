// Checks the other services: the mail server, the single sign-on provider, and receivers of exported records.
import { IdentityProvider } from "../accounts/identity-provider.ts";
import { GatewayError } from "../base/errors.ts";
import { trimSlashes } from "../base/text/http-url.ts";
import { type ExportSinkState, shownLag } from "../domain/exports.ts";
import { SmtpMailer } from "../mail/smtp-mailer.ts";
import { dialectOf } from "../storage/sql/database.ts";
import { schemaState } from "../storage/sql/schema.ts";
import { SqlExportStore } from "../storage/tables/operations/export-store.ts";
import { reasonOf } from "./examine.ts";
import { type Check, type Finding, failure, ok, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";

const answerMs = 4_000;
/** The first version of the schema with receivers of exported records. */
const exportsSchema = 54;

export function serviceChecks({ config }: Subject): Check[] {
  const { mail, sso } = config ?? {};
  return [
    ...(mail ? [{ name: "mail", run: () => mailServer(mail) }] : []),
    ...(sso ? [{ name: "single sign-on", run: () => provider(sso) }] : []),
  ];
}

async function mailServer(mail: { url: string; from: string }): Promise<Finding> {
  const { host } = new URL(mail.url);
  try {
    await new SmtpMailer({ ...mail, timeoutMs: answerMs }).checkConnection();
    return ok("mail", `${host} takes mail from us; none was sent`);
  } catch (error) {
    const reason = reasonIn(error, "mail: ");
    const remedy = /EAUTH/.test(reason)
      ? "Correct user and password in HEADRACE_SMTP_URL."
      : "See host and port in HEADRACE_SMTP_URL: smtps:// is port 465, smtp:// port 587 with STARTTLS. Until then links are shown, not mailed.";
    return failure("mail", `${host} does not take mail (${reason})`, remedy);
  }
}

async function provider(sso: NonNullable<NonNullable<Subject["config"]>["sso"]>): Promise<Finding> {
  const clock = { monotonicMs: () => performance.now() };
  try {
    await new IdentityProvider({ settings: sso, clock, timeoutMs: answerMs }).checkConnection();
    return ok("single sign-on", `${sso.issuer} describes itself`);
  } catch (error) {
    return failure(
      "single sign-on",
      `${sso.issuer} does not describe itself (${reasonIn(error, "sso: ")})`,
      `Correct sso.issuer: curl ${trimSlashes(sso.issuer)}/.well-known/openid-configuration must answer with the same issuer.`,
    );
  }
}

function reasonIn(error: unknown, prefix: string): string {
  if (!(error instanceof GatewayError) || error.detail === undefined) return reasonOf(error);
  return error.detail.startsWith(prefix) ? error.detail.slice(prefix.length) : error.detail;
}

const receivers: Readonly<Record<string, string>> = { otlp: "collector", s3: "object store" };
/** Seconds of lag from which an export needs attention. */
const maxLagSeconds = 600;
/**
 * Seconds since the last lease renewal of an exporting process. After this time, no process exports to the receiver.
 */
const unusedSeconds = 120;

export function exportChecks({ database, server }: Pick<Subject, "database" | "server">): Check[] {
  const name = "export";
  return [
    {
      name,
      async run() {
        const db = await database();
        // Before the first start of this version, the database has no such tables.
        if (!db || (await schemaState(db, dialectOf(db))).version < exportsSchema) return undefined;
        const states = await new SqlExportStore(db).states();
        return states.map((state) => findingOf(state, server !== undefined, Date.now() / 1000));
      },
    },
  ];
}

function findingOf(state: ExportSinkState, isRunning: boolean, nowSeconds: number): Finding {
  const { name, waiting, lagSeconds, failingSince, error, seenAt } = state;
  const title = `export to ${receivers[name] ?? name}`;
  const lag = waiting === 0 ? "no record waits" : `${waiting} records wait, the oldest for ${shownLag(lagSeconds)}`;
  if (failingSince !== null) {
    const since = new Date(failingSince * 1000).toISOString();
    const remedy = `Check the receiver, and \`export.${name}\` in headrace.yaml. The records stay in the database until it accepts them.`;
    return failure(title, `fails since ${since} (${error}); ${lag}`, remedy);
  }
  if (isRunning && nowSeconds - seenAt > unusedSeconds) {
    const remedy = `If it is wanted, configure \`export.${name}\` again. Otherwise its records are dropped a week after its last use.`;
    return warning(title, `no replica exports to it; ${lag}`, remedy);
  }
  if (lagSeconds > maxLagSeconds) {
    return warning(title, `is late: ${lag}`, "See the log for `export_failing` and `export_queue_not_read`.");
  }
  return ok(title, lag);
}
