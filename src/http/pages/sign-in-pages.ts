// The pages for signing in and signing out.
import type { SignIn } from "../../accounts/sign-in.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import { browserOrigin } from "../exchange/browser.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../exchange/route.ts";
import { csrfField, type FormFault, faultNotice, faultOf, field, hidden } from "./form.ts";
import { type Html, html } from "./html.ts";
import { home, localPath, nextOf, signInPath } from "./local-path.ts";
import {
  formAt,
  goOn,
  type OpenFormDeps,
  openFormPage,
  type PageDeps,
  pageAnswer,
  pageAt,
  readForm,
  redirectTo,
  signedInAt,
} from "./page.ts";
import { passkeySignIn } from "./passkey-parts.ts";
import { ssoButton } from "./sso-parts.ts";

export interface SignInPageDeps extends OpenFormDeps {
  signIn: Pick<SignIn, "password">;
  /** Returns the identity provider's name for its button. Undefined without single sign-on. */
  singleSignOnName(): string | undefined;
  /** Reports whether the installation has no people yet, so that nobody can sign in. */
  isNew(): Promise<boolean>;
}

/** Path of the page that a tab shows if the sign-in continues in another tab. */
const signedInPath = "/signed-in";

export function signInRoutes(deps: SignInPageDeps): PageRoute[] {
  return [
    pageAt("/sign-in", async (exchange) => {
      const next = nextOf(exchange.req.target) ?? home;
      if (await signedInAt(exchange, deps)) return redirectTo(next);
      return signInPage(deps, { next });
    }),
    pageAt(signedInPath, async (exchange) => {
      const signedIn = await signedInAt(exchange, deps);
      return signedIn ? signedInPage(signedIn) : redirectTo(signInPath(signedInPath));
    }),
    formAt("/sign-in", (exchange) => signIn(exchange, deps)),
    formAt("/sign-out", (exchange) => signOut(exchange, deps)),
  ];
}

async function signIn(exchange: Exchange, deps: SignInPageDeps): Promise<PlainAnswer> {
  // The form is accepted even if a session exists, because the person may have signed in in another window meanwhile.
  const fields = await readForm(exchange, deps, undefined);
  const next = localPath(fields.get("next")) ?? home;
  const email = fields.get("email") ?? "";
  try {
    const { cookie } = await deps.signIn.password(email, fields.get("password") ?? "", browserOrigin(exchange));
    exchange.answerHeaders["set-cookie"] = cookie;
  } catch (error) {
    const fault = faultOf(error, ["email", "password"], exchange);
    return signInPage(deps, { next, email, fault });
  }
  return goOn(next);
}

async function signOut(exchange: Exchange, deps: PageDeps): Promise<PlainAnswer> {
  const signedIn = await signedInAt(exchange, deps);
  const fields = await readForm(exchange, deps, signedIn);
  if (signedIn) exchange.answerHeaders["set-cookie"] = await deps.sessions.end(signedIn, browserOrigin(exchange));
  return redirectTo(localPath(fields.get("next")) ?? "/sign-in");
}

interface SignInView {
  next: string;
  email?: string;
  fault?: FormFault;
}

async function signInPage(deps: SignInPageDeps, { next, email, fault }: SignInView): Promise<PlainAnswer> {
  const sso = deps.singleSignOnName();
  const body = html`<h1>Sign in</h1>
${(await deps.isNew()) && html`<div class="notice"><p>This server has no sign-in yet. At its start, the server printed a link to create the first sign-in. To print a new link, run <code>headrace setup-link</code> on its machine.</p></div>`}
${faultNotice(fault)}
<form method="post" action="/sign-in" class="fields">
${hidden("next", next)}
${field({ name: "email", label: "E-mail address", type: "email", autocomplete: "username webauthn", value: email, autofocus: email === undefined, fault })}
${field({ name: "password", label: "Password", type: "password", autocomplete: "current-password", autofocus: email !== undefined, fault })}
<button>Sign in</button>
</form>
<p class="after"><a href="/reset">Forgot your password?</a></p>
<p class="or">or</p>
<div class="ways">${sso !== undefined && ssoButton(sso, next)}${passkeySignIn(next)}</div>`;
  return openFormPage({ title: "Sign in", body, scripts: ["passkeys.js"], opener: "kept" }, fault, deps);
}

function signedInPage(signedIn: SignedIn): PlainAnswer {
  const body = html`<h1>You are signed in</h1>
<p>Go back to the other tab to continue there. You can close this tab.</p>`;
  return pageAnswer({ title: "Signed in", body, signedIn });
}

/**
 * Renders a sign-out form, for pages that are meant for a person other than the signed-in one. After signing out, the
 * browser opens `next`.
 */
export function signOutForm(signedIn: SignedIn, next: string): Html {
  return html`<form method="post" action="/sign-out">${csrfField(signedIn)}${hidden("next", next)}
<button class="second">Sign out</button></form>`;
}
