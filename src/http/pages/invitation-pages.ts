// The pages of an invitation link. They differ for a new person, for a person who has a sign-in here, and for a person
// other than the invited one.
import type { OneTimeLinks } from "../../accounts/links.ts";
import type { AccountStore } from "../../domain/account.ts";
import { normalizedEmail, type OneTimeLink, type PersonStore } from "../../domain/people/person.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import { browserOrigin } from "../exchange/browser.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../exchange/route.ts";
import { deadLinkPage } from "./dead-link-page.ts";
import { csrfField, type FormFault, faultNotice, faultOf, nameField, newPasswordField, usernameOf } from "./form.ts";
import { type Html, html } from "./html.ts";
import { home, signInPath } from "./local-path.ts";
import { formAt, type OpenFormDeps, openFormPage, pageAt, readForm, redirectTo, signedInAt } from "./page.ts";
import { signOutForm } from "./sign-in-pages.ts";
import { roleWords } from "./words.ts";

export interface InvitationPageDeps extends OpenFormDeps {
  links: Pick<OneTimeLinks, "find" | "acceptance">;
  people: Pick<PersonStore, "findByEmail">;
  accounts: Pick<AccountStore, "findAccount">;
}

const path = "/invitations/:token";

/**
 * The visitor of the link: a new person, a known person who must sign in, the invited person, or another signed-in
 * person.
 */
type Guest = { is: "new" } | { is: "known" } | { is: "invited" | "somebody else"; signedIn: SignedIn };

interface InvitationView {
  token: string;
  invitation: OneTimeLink;
  guest: Guest;
  name?: string;
  fault?: FormFault;
}

export function invitationRoutes(deps: InvitationPageDeps): PageRoute[] {
  return [
    pageAt(path, async (exchange) => {
      const view = await invitationAt(exchange, deps, await signedInAt(exchange, deps));
      return view ? invitationPage(deps, view) : deadLink();
    }),
    formAt(path, (exchange) => accept(exchange, deps)),
  ];
}

async function accept(exchange: Exchange, deps: InvitationPageDeps): Promise<PlainAnswer> {
  const signedIn = await signedInAt(exchange, deps);
  const fields = await readForm(exchange, deps, signedIn);
  const view = await invitationAt(exchange, deps, signedIn);
  if (!view) return deadLink();
  const { token, guest } = view;
  if (guest.is === "known" || guest.is === "somebody else") return invitationPage(deps, view);
  const name = fields.get("name") ?? "";
  const who =
    "signedIn" in guest ? { person: guest.signedIn.person } : { name, password: fields.get("password") ?? "" };
  try {
    const accepted = await deps.links.acceptance.invitation(token, who, browserOrigin(exchange));
    if (accepted.cookie !== undefined) exchange.answerHeaders["set-cookie"] = accepted.cookie;
  } catch (error) {
    const fault = faultOf(error, ["name", "password"], exchange);
    return invitationPage(deps, { ...view, name, fault });
  }
  return redirectTo(home);
}

async function invitationAt(
  { params }: Exchange,
  { links, people }: InvitationPageDeps,
  signedIn: SignedIn | undefined,
): Promise<InvitationView | undefined> {
  const token = params["token"] ?? "";
  const invitation = await links.find(token, "invitation");
  if (!invitation) return undefined;
  const email = normalizedEmail(invitation.email ?? "");
  const guest: Guest = signedIn
    ? { is: signedIn.person.email === email ? "invited" : "somebody else", signedIn }
    : { is: (await people.findByEmail(email)) ? "known" : "new" };
  return { token, invitation, guest };
}

async function invitationPage(deps: InvitationPageDeps, view: InvitationView): Promise<PlainAnswer> {
  const { invitation, guest, fault } = view;
  const account = await deps.accounts.findAccount(invitation.accountId ?? "");
  const accountName = account?.name ?? "An account";
  const body = html`<h1>Join ${accountName}</h1>
<p>You are invited to this account on Headrace.</p>
<dl class="facts">
<dt>Invited</dt><dd>${invitation.email}</dd>
<dt>Your role</dt><dd>${roleWords[invitation.role ?? "member"]}</dd>
</dl>
${faultNotice(fault)}
${answerTo(view)}`;
  const signedIn = "signedIn" in guest ? guest.signedIn : undefined;
  return openFormPage({ title: `Join ${accountName}`, body, signedIn }, fault, deps);
}

function answerTo({ token, invitation, guest, name, fault }: InvitationView): Html {
  const here = `/invitations/${encodeURIComponent(token)}`;
  switch (guest.is) {
    case "new":
      return html`<form method="post" action="${here}" class="fields">
${usernameOf(invitation.email ?? "")}
${nameField(name, fault)}
${newPasswordField(fault)}
<button>Join</button>
</form>`;
    case "known":
      return html`<p>This address already has a sign-in. Sign in, and you return to this page.</p>
<p><a class="button" href="${signInPath(here)}">Sign in to join</a></p>`;
    case "invited":
      return html`<form method="post" action="${here}">${csrfField(guest.signedIn)}<button class="full">Join</button></form>`;
    case "somebody else":
      return html`<div class="notice"><p>You are signed in as <strong>${guest.signedIn.person.email}</strong>, but this invitation is for another address. Sign out to accept the invitation.</p></div>
${signOutForm(guest.signedIn, here)}`;
  }
}

function deadLink(): PlainAnswer {
  return deadLinkPage(
    html`Ask the person who invited you for a new link. If you have already joined, <a href="/sign-in">sign in</a>.`,
  );
}
