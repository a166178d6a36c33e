// The dialog that invites a person into an account; if the server sends no mail, it shows the link once.
import { Modal, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { CreatedInvitation, CreateInvitationRequest } from "../../api/types.ts";
import { problemOf } from "../editing/field-problem.ts";
import { Form } from "../editing/form.tsx";
import { useFirstProblem } from "../editing/use-first-problem.ts";
import { useLast } from "../editing/use-last.ts";
import { ShownOnce } from "../secrets/shown-once.tsx";
import { at } from "../words/figures.ts";
import { RoleChoice } from "./role-choice.tsx";
import { type Role, roles } from "./roles.ts";

interface InviteProps {
  opened: boolean;
  /** The API path of the account's invitations. */
  path: string;
  /** The name of the account. */
  into: string;
  /** The preselected role. */
  usual: Role;
  /** The roles that the inviting user may grant. */
  allowed?: readonly Role[];
  close(): void;
}

export function Invite({ opened, into, close, ...props }: InviteProps) {
  const [made, setMade] = useState<CreatedInvitation>();
  const shown = useLast(made);
  const done = (invitation: CreatedInvitation) => {
    close();
    if (invitation.link !== null) setMade(invitation);
    else notifications.show({ message: `An invitation was mailed to ${invitation.email}.` });
  };
  return (
    <>
      <Modal opened={opened} onClose={close} title={`Invite to ${into}`}>
        <InviteForm {...props} close={close} done={done} />
      </Modal>
      <ShownOnce
        title={`Invitation link for ${shown?.email ?? ""}`}
        secret={made?.link ?? undefined}
        label="Copy the link"
        close={() => setMade(undefined)}
      >
        No mail was sent. Send this link to {shown?.email} yourself, as safely as you would send a password. The link
        works once, until {shown ? at(shown.expires_at) : ""}.
      </ShownOnce>
    </>
  );
}

interface InviteFormProps extends Omit<InviteProps, "opened" | "into"> {
  done(invitation: CreatedInvitation): void;
}

function InviteForm({ path, usual, allowed = roles, close, done }: InviteFormProps) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>(usual);
  const invite = useChange((body: CreateInvitationRequest) => call<CreatedInvitation>("POST", path, { body }), {
    stale: [path],
    done,
  });
  const form = useFirstProblem(problemOf(invite.error, "email"), problemOf(invite.error, "role"));
  return (
    <Form
      ref={form}
      noValidate
      sending={invite}
      fields={["email", "role"]}
      action="Invite"
      submit={() => invite.mutate({ email: email.trim(), role })}
      cancel={close}
    >
      <TextInput
        label="E-mail address"
        description="This person receives a link to set up their sign-in. The link works once, for a week."
        type="email"
        value={email}
        onChange={(event) => {
          invite.reset();
          setEmail(event.currentTarget.value);
        }}
        error={problemOf(invite.error, "email")}
        autoComplete="off"
        required
        withAsterisk={false}
        data-autofocus
      />
      <RoleChoice
        value={role}
        change={setRole}
        allowed={allowed}
        {...(allowed.length < roles.length ? { why: "Only owners can invite owners and admins." } : {})}
        error={problemOf(invite.error, "role")}
      />
    </Form>
  );
}
