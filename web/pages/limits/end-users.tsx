// The budgets of end users: the users whom requests name. For owners and admins.
import { Group, Stack, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { call } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import type { EndUserList } from "../../api/types.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { PlainButton, SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Card } from "../../parts/page/section.tsx";
import { QuotaForm } from "../../parts/quotas/quota-form.tsx";
import { Note } from "../../parts/words/note.tsx";
import { quotasInWords } from "../../parts/words/quotas.ts";

const path = "/v1/account/end-users";
const pathOf = (id: string) => `${path}/${encodeURIComponent(id)}`;

/** The budget that the drawer shows: an end user's, or the default budget. */
interface Edited {
  /** The id of the end user; undefined for the default budget. */
  id: string | undefined;
}

export function EndUsers() {
  const { data, error, refetch } = useRead<EndUserList>(path);
  const [edited, setEdited] = useState<Edited>();
  const [id, setId] = useState("");
  const remove = useNotifiedChange((name: string) => call("DELETE", pathOf(name)), {
    stale: [path],
    said: (_, name) => `The default budget applies to ${name} again.`,
  });
  if (!data) return error ? <Failure error={error} retry={refetch} /> : null;
  const rules = (of: Edited) =>
    of.id === undefined ? (data.default_quotas ?? []) : (data.data.find((one) => one.id === of.id)?.quotas ?? []);
  return (
    <Card title="Budgets of end users">
      <Stack gap="sm">
        <Note>
          An end user is the user whom a request of your application names with user or safety_identifier. Requests
          without a name count against no budget here.
        </Note>
        <Stack gap="xs" component="ul" m={0} p={0} style={{ listStyle: "none" }}>
          <Budget name="Each end user" quotas={data.default_quotas}>
            <SmallButton onClick={() => setEdited({ id: undefined })}>Change default</SmallButton>
          </Budget>
          {data.data.map((one) => (
            <Budget key={one.id} name={one.id} quotas={one.quotas}>
              <SmallButton aria-label={`Change ${one.id}`} onClick={() => setEdited(one)}>
                Change
              </SmallButton>
              <SmallButton aria-label={`Remove ${one.id}`} onClick={() => remove.mutate(one.id)}>
                Remove
              </SmallButton>
            </Budget>
          ))}
        </Stack>
        {remove.error && <Text c="var(--mantine-color-error)">{remove.error.message}</Text>}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            setEdited({ id });
          }}
        >
          <Group align="end">
            <TextInput
              label="End user"
              value={id}
              onChange={(event) => setId(event.currentTarget.value)}
              maxLength={512}
              required
            />
            <PlainButton type="submit">Set budget</PlainButton>
          </Group>
        </form>
      </Stack>
      <FormDrawer of={edited} close={() => setEdited(undefined)} size="lg" title={titleOf}>
        {(shown) => (
          <QuotaForm
            method="PUT"
            path={shown.id === undefined ? path : pathOf(shown.id)}
            member={shown.id === undefined ? "default_quotas" : "quotas"}
            quotas={rules(shown)}
            about="Each environment is counted separately. Choose calendar windows, such as a day or a month."
            stale={[path]}
            said="The budget was saved and takes effect immediately."
            close={() => {
              setEdited(undefined);
              setId("");
            }}
          />
        )}
      </FormDrawer>
    </Card>
  );
}

interface BudgetProps {
  name: string;
  /** Null means no budget. */
  quotas: EndUserList["default_quotas"];
  children: ReactNode;
}

function Budget({ name, quotas, children }: BudgetProps) {
  return (
    <Group component="li" justify="space-between" gap="xs">
      <div style={{ minWidth: 0, overflowWrap: "anywhere" }}>
        <Text size="sm" fw={500}>
          {name}
        </Text>
        <Text size="sm" c="dimmed">
          {quotas ? quotasInWords(quotas) : "no budget"}
        </Text>
      </div>
      <Group gap="xs">{children}</Group>
    </Group>
  );
}

function titleOf({ id }: Edited): string {
  return id === undefined ? "Budget of each end user" : `Budget of ${id}`;
}
