// The page Members for a user who does not manage the account: the user's role, and the button to leave.
import { Group, Text } from "@mantine/core";
import { useState } from "react";
import { useSession } from "../../api/session.tsx";
import { roleMeanings, roleNames } from "../../parts/membership/roles.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Section } from "../../parts/page/section.tsx";
import { OwnQuotas } from "./member-quotas.tsx";
import { RemoveMember } from "./remove-member.tsx";

export function OwnMembership() {
  const { session } = useSession();
  const [leaving, setLeaving] = useState(false);
  const { account, accounts, person, role } = session;
  const membership = accounts.find(({ id }) => id === account.id);
  return (
    <Page title="Members" about={`Only owners and admins of ${account.name} can see its members.`}>
      <Section title={`Your role: ${roleNames[role]}`} about={roleMeanings[role]}>
        <Text size="sm">To invite a person or to get another role, ask an owner of the account.</Text>
        <Group>
          <PlainButton onClick={() => setLeaving(true)}>Leave the account…</PlainButton>
        </Group>
      </Section>
      {membership && (
        <Section
          title="Your quotas"
          about="Set by an owner or admin of the account. They count everything that you use in this environment, including with your keys and apps."
        >
          <OwnQuotas id={membership.membership_id} isOwn />
        </Section>
      )}
      <RemoveMember
        member={leaving && membership ? { id: membership.membership_id, name: person.name } : undefined}
        isSelf
        close={() => setLeaving(false)}
      />
    </Page>
  );
}
