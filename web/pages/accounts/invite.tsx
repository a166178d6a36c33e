// Invites somebody into an account; where no mail goes out, the link is shown once, to be handed over.
import { Button, Group, Modal, NativeSelect, Stack, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Account, CreatedInvitation, CreateInvitationRequest } from "../../api/types.ts";
import { Failure } from "../../parts/failure.tsx";
import { problemBeside, problemOf } from "../../parts/field-problem.ts";
import { at } from "../../parts/figures.ts";
import { type Role, roleMeanings, roleNames, roles } from "../../parts/roles.ts";
import { ShownOnce } from "../../parts/shown-once.tsx";

interface InviteProps {
  opened: boolean;
  account: Account;
  close(): void;
}

export function Invite({ opened, account, close }: InviteProps) {
  const [made, setMade] = useState<CreatedInvitation>();
  const done = (invitation: CreatedInvitation) => {
    close();
    if (invitation.link !== null) setMade(invitation);
    else notifications.show({ message: `An invitation was mailed to ${invitation.email}.` });
  };
  return (
    <>
      <Modal opened={opened} onClose={close} title={`Invite into ${account.name}`}>
        <Form account={account} close={close} done={done} />
      </Modal>
      <ShownOnce
        title={`The link for ${made?.email ?? ""}`}
        secret={made?.link ?? undefined}
        label="Copy the link"
        close={() => setMade(undefined)}
      >
        No mail was sent: give the link to {made?.email} yourself. It works once, until{" "}
        {made ? at(made.expires_at) : ""}.
      </ShownOnce>
    </>
  );
}

interface FormProps extends Omit<InviteProps, "opened"> {
  done(invitation: CreatedInvitation): void;
}

function Form({ account, close, done }: FormProps) {
  const path = `/v1/admin/accounts/${account.id}/invitations`;
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("owner");
  const invite = useChange((body: CreateInvitationRequest) => call<CreatedInvitation>("POST", path, { body }), {
    stale: [path],
    done,
  });
  const problem = problemBeside(invite.error, ["email", "role"]);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        invite.mutate({ email, role });
      }}
    >
      <Stack>
        <TextInput
          label="E-mail address"
          type="email"
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
          error={problemOf(invite.error, "email")}
          required
          data-autofocus
        />
        <NativeSelect
          label="Role"
          description={roleMeanings[role]}
          inputWrapperOrder={["label", "input", "description", "error"]}
          data={roles.map((value) => ({ value, label: roleNames[value] }))}
          value={role}
          onChange={(event) => setRole(event.currentTarget.value as Role)}
          error={problemOf(invite.error, "role")}
        />
        {problem && <Failure error={problem} />}
        <Group justify="end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={invite.isPending}>
            Invite
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
