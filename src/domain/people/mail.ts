// A message to a person and the port that sends it.

/** A plain-text message. `to` is a single address. */
export interface MailMessage {
  to: string;
  subject: string;
  text: string;
}

/** Sends mail. Throws `service_unavailable` if the mail server did not accept the message. */
export interface MailSender {
  send(message: MailMessage): Promise<void>;
}
