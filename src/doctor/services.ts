// Checks the other services: the mail server and the single sign-on provider.
import { IdentityProvider } from "../accounts/identity-provider.ts";
import { GatewayError } from "../base/errors.ts";
import { trimSlashes } from "../base/text/http-url.ts";
import { SmtpMailer } from "../mail/smtp-mailer.ts";
import { reasonOf } from "./examine.ts";
import { type Check, type Finding, failure, ok } from "./finding.ts";
import type { Subject } from "./subject.ts";

const answerMs = 4_000;

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
