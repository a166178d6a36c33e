// A member's quotas and their usage: a form for users who may change them, else read-only.
import { Stack, Text, Title } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { Member, MemberDetails } from "../../api/types.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { QuotaForm } from "../../parts/quotas/quota-form.tsx";
import { UsedQuotas } from "../../parts/quotas/used-quotas.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { Note } from "../../parts/words/note.tsx";

interface MemberQuotasProps {
  member: Member;
  /** The reason why the quotas may not be changed; undefined if they may. */
  why: string | undefined;
  close(): void;
}

export function MemberQuotas({ member, why, close }: MemberQuotasProps) {
  const { environment } = useSession();
  if (why !== undefined) {
    return (
      <Stack gap="xs">
        <Title order={3} size="sm">
          Quotas
        </Title>
        <OwnQuotas id={member.id} />
        <Note>{why}</Note>
      </Stack>
    );
  }
  return (
    <QuotaForm
      path={`/v1/members/${member.id}`}
      quotas={member.quotas}
      about={`These quotas count everything that ${member.name} uses: the dashboard, command line logins, keys and allowed apps. Each environment is counted separately. The usage shown here is of ${environmentNames[environment]}.`}
      stale={["/v1/members"]}
      said={`The quotas of ${member.name} were saved and take effect immediately.`}
      close={close}
    />
  );
}

/** Shows the usage of the user's own quotas, or of a visible member's. */
export function OwnQuotas({ id, isOwn = false }: { id: string; isOwn?: boolean }) {
  const { data, error } = useRead<MemberDetails>(`/v1/members/${id}`, {}, { everyMs: 10_000 });
  if (error && !data) return <Failure error={error} />;
  if (!data) return null;
  return data.quotas_used.length > 0 ? (
    <UsedQuotas quotas={data.quotas_used} mayAsk={() => isOwn} />
  ) : (
    <Text size="sm">No quotas. Only the limits of the account apply.</Text>
  );
}
