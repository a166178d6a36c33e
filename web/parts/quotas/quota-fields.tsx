// A list of quotas within a longer form: add, change and remove rules.
import { Fieldset, Group, Stack, Text } from "@mantine/core";
import { PlusIcon } from "@primer/octicons-react";
import { type ReactNode, useRef, useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { ModelList } from "../../api/types.ts";
import { SmallButton } from "../page/buttons.tsx";
import { SmallNote } from "../words/note.tsx";
import { maxQuotas, type QuotaDraft, readQuotaProblem, withNewQuota } from "./quota-draft.ts";
import { QuotaRuleFields } from "./quota-rule-fields.tsx";
import type { UsedQuota } from "./used-quotas.tsx";

interface QuotaFieldsProps {
  quotas: readonly QuotaDraft[];
  /** The error, in the form of `quotasError` and of the server. */
  error: string | undefined;
  /** A text about whose requests the quotas limit, and which other limits apply. */
  about: ReactNode;
  /** The usage of the quotas now in force. */
  used?: readonly UsedQuota[];
  change(quotas: QuotaDraft[]): void;
}

export function QuotaFields({ quotas, error, about, used = [], change }: QuotaFieldsProps) {
  const add = useRef<HTMLButtonElement>(null);
  // The key of a quota that was just added and gets the focus.
  const [newest, setNewest] = useState<number>();
  const models = useRead<ModelList>("/v1/models");
  const problem = error === undefined ? undefined : readQuotaProblem(error);
  const isPlaced = problem?.at !== undefined && problem.at < quotas.length;
  return (
    <Fieldset legend="Quotas per window">
      <Stack gap="sm">
        <SmallNote>{about}</SmallNote>
        {quotas.map((quota, at) => (
          <QuotaRuleFields
            key={quota.key}
            quota={quota}
            number={at + 1}
            isNew={quota.key === newest}
            models={models.data?.data.map(({ id }) => id) ?? []}
            used={used}
            problem={problem?.at === at ? problem : undefined}
            change={(changed) => change(quotas.map((one) => (one.key === changed.key ? changed : one)))}
            remove={() => {
              change(quotas.filter((one) => one !== quota));
              add.current?.focus();
            }}
          />
        ))}
        {problem && !isPlaced && (
          <Text size="sm" c="var(--mantine-color-error)" role="alert">
            {problem.text}
          </Text>
        )}
        <Group gap="sm">
          <SmallButton
            ref={add}
            leftSection={<PlusIcon />}
            disabled={quotas.length >= maxQuotas}
            onClick={() => {
              const more = withNewQuota(quotas);
              setNewest(more.at(-1)?.key);
              change(more);
            }}
          >
            Add a quota
          </SmallButton>
          {quotas.length >= maxQuotas && <SmallNote>There may be {maxQuotas}.</SmallNote>}
        </Group>
      </Stack>
    </Fieldset>
  );
}
