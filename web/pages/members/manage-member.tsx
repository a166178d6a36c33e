// The dialog of one member: role, visibility, quotas, tools and removal, with the reason for each action that is not
// allowed.
import { Button, Divider, Group, Stack } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { Member } from "../../api/types.ts";
import { FormDialog } from "../../parts/editing/form-dialog.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { RoleChoice } from "../../parts/membership/role-choice.tsx";
import { type Role, roleNames } from "../../parts/membership/roles.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { Facts } from "../../parts/words/facts.tsx";
import { day } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { MemberQuotas } from "./member-quotas.tsx";
import { MemberSight } from "./member-sight.tsx";
import { MemberTools } from "./member-tools.tsx";

interface ManageMemberProps {
  opened: boolean;
  member: Member;
  isSelf: boolean;
  /**
   * The reason why the role may not be changed; undefined if it may. The next four members are the reasons for other
   * actions.
   */
  whyNoRole: string | undefined;
  whyNoSight: string | undefined;
  whyNoQuotas: string | undefined;
  whyNoTools: string | undefined;
  whyNoRemoval: string | undefined;
  remove(): void;
  close(): void;
}

export function ManageMember({ opened, member, close, ...props }: ManageMemberProps) {
  return (
    <FormDialog opened={opened} close={close} title={member.name}>
      <Content {...props} member={member} close={close} />
    </FormDialog>
  );
}

function Content(props: Omit<ManageMemberProps, "opened">) {
  const { member, isSelf, whyNoRole, whyNoSight, whyNoQuotas, whyNoTools, whyNoRemoval, remove, close } = props;
  const [role, setRole] = useState<Role>(member.role);
  const change = useNotifiedChange(
    (wanted: Role) => call<Member>("PATCH", `/v1/members/${member.id}`, { body: { role: wanted } }),
    {
      stale: ["/v1/members"],
      said: (changed) => `${changed.name} is ${roleNames[changed.role].toLowerCase()} now.`,
      done: close,
    },
  );
  return (
    <Stack>
      <Note style={{ overflowWrap: "anywhere" }}>{member.email}</Note>
      <Facts
        facts={[
          ["Member since", day(member.created_at)],
          ["Last seen", <Ago key="seen" seconds={member.last_seen_at} never="not recently" />],
        ]}
      />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate(role);
        }}
      >
        <Stack>
          <RoleChoice
            value={role}
            change={setRole}
            {...(whyNoRole === undefined ? {} : { why: whyNoRole, allowed: [] })}
          />
          {change.error && <Failure error={change.error} />}
          {whyNoRole === undefined && (
            <Group justify="space-between">
              <SmallNote>Takes effect immediately.</SmallNote>
              <Button type="submit" loading={change.isPending} disabled={role === member.role}>
                Change role
              </Button>
            </Group>
          )}
        </Stack>
      </form>
      <Divider />
      {member.role === "member" && (
        <>
          <MemberSight member={member} why={whyNoSight} />
          <Divider />
        </>
      )}
      <MemberQuotas member={member} why={whyNoQuotas} close={close} />
      <Divider />
      <MemberTools member={member} why={whyNoTools} />
      <Divider />
      <Group justify="space-between" gap="sm">
        <Note flex={1} miw="12rem">
          {whyNoRemoval ??
            (isSelf ? "The other members keep the account." : "This person loses all access to the account.")}
        </Note>
        <PlainButton onClick={remove} disabled={whyNoRemoval !== undefined}>
          {isSelf ? "Leave the account…" : "Remove from the account…"}
        </PlainButton>
      </Group>
    </Stack>
  );
}
