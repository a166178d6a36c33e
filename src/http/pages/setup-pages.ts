// The page of the setup link, whose visitor becomes the operator of the installation.
import type { OneTimeLinks } from "../../accounts/links.ts";
import { browserOrigin } from "../exchange/browser.ts";
import type { PageRoute, PlainAnswer } from "../exchange/route.ts";
import { deadLinkPage } from "./dead-link-page.ts";
import { type FormFault, faultNotice, faultOf, field, nameField, newPasswordField } from "./form.ts";
import { html } from "./html.ts";
import { home } from "./local-path.ts";
import { formAt, type OpenFormDeps, openFormPage, pageAt, readForm, redirectTo } from "./page.ts";

export interface SetupPageDeps extends OpenFormDeps {
  links: Pick<OneTimeLinks, "find" | "acceptance">;
  /** Called after logins may have ended, to clear caches of them. */
  changed(ids?: readonly string[]): void;
}

interface SetupView {
  token: string;
  email?: string;
  name?: string;
  fault?: FormFault;
}

const path = "/setup/:token";
const deadLink = () =>
  deadLinkPage(
    html`Run <code>headrace setup-link</code> on the server for a new one, or <a href="/sign-in">sign in</a>.`,
  );

export function setupRoutes(deps: SetupPageDeps): PageRoute[] {
  const { links } = deps;
  return [
    pageAt(path, async ({ params }) => {
      const token = params["token"] ?? "";
      return (await links.find(token, "setup")) ? setupPage(deps, { token }) : deadLink();
    }),
    formAt(path, async (exchange) => {
      const token = exchange.params["token"] ?? "";
      const fields = await readForm(exchange, deps, undefined);
      if (!(await links.find(token, "setup"))) return deadLink();
      const [email, name] = [fields.get("email") ?? "", fields.get("name") ?? ""];
      const password = fields.get("password") ?? "";
      try {
        const { cookie } = await links.acceptance.setup(token, { email, name, password }, browserOrigin(exchange));
        exchange.answerHeaders["set-cookie"] = cookie;
        deps.changed();
      } catch (error) {
        const fault = faultOf(error, ["email", "name", "password"], exchange);
        return setupPage(deps, { token, email, name, fault });
      }
      return redirectTo(home);
    }),
  ];
}

function setupPage(deps: SetupPageDeps, { token, email, name, fault }: SetupView): PlainAnswer {
  const body = html`<h1>Set up Headrace</h1>
<p>You become the operator of this server. An operator manages accounts and invites other people.</p>
${faultNotice(fault)}
<form method="post" action="/setup/${encodeURIComponent(token)}" class="fields">
${field({ name: "email", label: "E-mail address", type: "email", autocomplete: "username", value: email, hint: "You sign in with this address.", autofocus: true, fault })}
${nameField(name, fault)}
${newPasswordField(fault)}
<button>Create my sign-in</button>
</form>`;
  return openFormPage({ title: "Set up", body }, fault, deps);
}
