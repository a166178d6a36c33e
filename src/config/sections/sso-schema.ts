// The section of headrace.yaml about sign-in at an OpenID Connect provider.
import * as z from "zod";
import { field, list, mapping, printablePattern } from "../field.ts";
import { isHost, isIssuerUrl } from "../formats.ts";

export const sso = field(
  z.strictObject({
    name: field(z.string().trim().min(1).max(40), {
      doc: "Name of the provider on the sign-in page, after `Continue with`.",
      must: "1 to 40 characters",
      fix: "Give the name by which people know it, such as Example Inc.",
    }),
    issuer: field(z.string().refine(isIssuerUrl), {
      doc: "Issuer of the provider, which serves `/.well-known/openid-configuration`. Register `/sso/callback` of the public URL as the redirect URI.",
      must: "an https:// URL without user, query or fragment; http:// on this machine alone",
      fix: "Give the issuer as the provider names it, such as https://login.example.com.",
      quiet: true,
    }),
    client_id: field(z.string().max(512).regex(printablePattern), {
      doc: "Client id of Headrace at the provider.",
      must: "1 to 512 printable ASCII characters without spaces",
      fix: "Give the id that the provider shows for the client.",
    }),
    client_secret: field(z.string().max(1024).regex(printablePattern), {
      doc: `The client's secret. Keep it out of the file: \`\${NAME}\` takes it from a variable. Default: none, as for a public client.`,
      must: "1 to 1024 printable ASCII characters without spaces or line breaks",
      fix: "Check the value for blanks and line breaks, or leave the key out if the provider gave none.",
      quiet: true,
    }).optional(),
    scopes: field(
      z
        .array(
          field(z.string().max(100).regex(printablePattern), {
            doc: "A scope.",
            must: "the name of a scope, without spaces",
            fix: "Write each scope as an entry of its own.",
          }),
        )
        .refine((scopes) => scopes.includes("openid")),
      list(
        "Scopes that Headrace requests from the provider.",
        "scopes, openid among them",
        "Write [openid, email, profile].",
      ),
    ).default(["openid", "email", "profile"]),
    allowed_domains: field(
      z.array(
        field(
          z.string().refine((text) => isHost(text) && text === text.toLowerCase()),
          {
            doc: "A domain.",
            must: "a domain in lower case, without @",
            fix: "Give the part of the addresses behind the @, such as example.com.",
          },
        ),
      ),
      list(
        "Mail domains whose people may join with a verified address. Empty: only people who were invited or already have a membership.",
        "domains",
      ),
    ).default([]),
    account: field(z.string().regex(/^acct_[\w-]{1,100}$/), {
      doc: "Id of the account that people of `allowed_domains` join. Default: the first account.",
      must: "the id of an account, acct_…",
      fix: "Give an id that `GET /v1/admin/accounts` lists, or leave it out.",
    }).optional(),
    role: field(z.enum(["admin", "member"]), {
      doc: "Role in the account of people who join through `allowed_domains`.",
      must: "admin or member",
      fix: "Write member; owners are made by owners.",
    }).default("member"),
  }),
  mapping("Sign-in through your own OpenID Connect provider."),
);
