// A message to a person and the port that sends it.

/** One plain-text message; `to` is a single address. */
export interface MailMessage {
  to: string;
  subject: string;
  text: string;
}

/** Sends mail. A message that could not be handed to the mail server throws `service_unavailable`. */
export interface MailSender {
  send(message: MailMessage): Promise<void>;
}
