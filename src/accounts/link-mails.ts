// Writes the mails that contain links.
import type { MailMessage } from "../domain/people/mail.ts";

export function invitationMail(to: string, accountName: string, url: string): MailMessage {
  return {
    to,
    subject: "You are invited to Headrace",
    text: `You are invited to the account "${accountName}" on Headrace.

Open this address within 7 days to join; it works once:

${url}

If you do not know what this is about, you need not do anything.
`,
  };
}

export function resetMail(to: string, url: string): MailMessage {
  return {
    to,
    subject: "Set a new password for Headrace",
    text: `Somebody, probably you, asked for a new password for your sign-in at Headrace.

Open this address within an hour to set one; it works once:

${url}

If it was not you, you need not do anything: your password stays as it is.
`,
  };
}
