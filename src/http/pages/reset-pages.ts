// The pages for a forgotten password: request a link by email, and set a new password.
import type { OneTimeLinks } from "../../accounts/links.ts";
import type { PersonStore } from "../../domain/people/person.ts";
import { browserOrigin } from "../exchange/browser.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../exchange/route.ts";
import { deadLinkPage } from "./dead-link-page.ts";
import { type FormFault, faultNotice, faultOf, field, newPasswordField, usernameOf } from "./form.ts";
import { html } from "./html.ts";
import { formAt, type OpenFormDeps, openFormPage, pageAnswer, pageAt, readForm, redirectTo } from "./page.ts";

export interface ResetPageDeps extends OpenFormDeps {
  links: Pick<OneTimeLinks, "find" | "requestReset" | "acceptance" | "isMailing">;
  people: Pick<PersonStore, "findPerson">;
  /** Called after logins may have ended, to clear caches of them. */
  changed(ids?: readonly string[]): void;
}

interface NewPasswordView {
  token: string;
  /** The email address of the person whose password is set. */
  email: string;
}

const linkPath = "/reset/:token";
const deadLink = () => deadLinkPage(html`<a href="/reset">Ask for a new link</a>.`);

export function resetRoutes(deps: ResetPageDeps): PageRoute[] {
  return [
    pageAt("/reset", () => askPage(deps)),
    formAt("/reset", (exchange) => ask(exchange, deps)),
    pageAt(linkPath, async ({ params }) => {
      const view = await newPasswordAt(params["token"] ?? "", deps);
      return view ? newPasswordPage(deps, view) : deadLink();
    }),
    formAt(linkPath, (exchange) => reset(exchange, deps)),
  ];
}

async function ask(exchange: Exchange, deps: ResetPageDeps): Promise<PlainAnswer> {
  const fields = await readForm(exchange, deps, undefined);
  const email = fields.get("email") ?? "";
  try {
    await deps.links.requestReset(email, browserOrigin(exchange));
  } catch (error) {
    const fault = faultOf(error, ["email"], exchange);
    return askPage(deps, { email, fault });
  }
  return askedPage(deps, email.trim());
}

async function newPasswordAt(token: string, { links, people }: ResetPageDeps): Promise<NewPasswordView | undefined> {
  const link = await links.find(token, "password_reset");
  const person = link && (await people.findPerson(link.personId ?? ""));
  return person && { token, email: person.email };
}

async function reset(exchange: Exchange, deps: ResetPageDeps): Promise<PlainAnswer> {
  const token = exchange.params["token"] ?? "";
  const fields = await readForm(exchange, deps, undefined);
  const view = await newPasswordAt(token, deps);
  if (!view) return deadLink();
  try {
    const { cookie } = await deps.links.acceptance.passwordReset(
      token,
      fields.get("password") ?? "",
      browserOrigin(exchange),
    );
    exchange.answerHeaders["set-cookie"] = cookie;
    deps.changed();
  } catch (error) {
    const fault = faultOf(error, ["password"], exchange);
    return newPasswordPage(deps, view, fault);
  }
  return redirectTo("/settings?done=password");
}

function askPage(deps: ResetPageDeps, { email, fault }: { email?: string; fault?: FormFault } = {}): PlainAnswer {
  const body = html`<h1>Set a new password</h1>
<p>${
    deps.links.isMailing
      ? "Enter the address that you sign in with. You receive a link by mail."
      : "This server sends no mail. Enter the address that you sign in with to ask an operator for a link."
  }</p>
${faultNotice(fault)}
<form method="post" action="/reset" class="fields">
${field({ name: "email", label: "E-mail address", type: "email", autocomplete: "username", value: email, autofocus: true, fault })}
<button>${deps.links.isMailing ? "Send me a link" : "Ask for a link"}</button>
</form>
<p class="after"><a href="/sign-in">Back to sign-in</a></p>`;
  return openFormPage({ title: "Set a new password", body }, fault, deps);
}

/** Returns the same page for unknown addresses, so that it does not reveal who is registered. */
function askedPage({ links }: ResetPageDeps, email: string): PlainAnswer {
  const title = links.isMailing ? "Check your mail" : "Now ask for your link";
  const body = html`<h1>${title}</h1>
${
  links.isMailing
    ? html`<p>If <strong>${email}</strong> has a sign-in here, a link to set a new password was sent to that address. The link works for one hour.</p>
<p>No mail? An operator of this server can also give you a link.</p>`
    : html`<p>If <strong>${email}</strong> has a sign-in here, the operators of this server can now see your request. Ask an operator for a link.</p>`
}
<p><a href="/sign-in">Back to sign-in</a></p>`;
  return pageAnswer({ title, body });
}

function newPasswordPage(deps: ResetPageDeps, { token, email }: NewPasswordView, fault?: FormFault): PlainAnswer {
  const body = html`<h1>Set a new password</h1>
<p>For <strong>${email}</strong>. After you set it, you are signed in here. Other browsers and command line logins are signed out.</p>
${faultNotice(fault)}
<form method="post" action="/reset/${encodeURIComponent(token)}" class="fields">
${usernameOf(email)}
${newPasswordField(fault, { label: "New password", autofocus: true })}
<button>Set password and sign in</button>
</form>`;
  return openFormPage({ title: "Set a new password", body }, fault, deps);
}
