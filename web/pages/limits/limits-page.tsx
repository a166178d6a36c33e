// The page Limits: the account's limits, what remains, the refused requests, and the other tiers.
import { Alert, Badge, Box, SimpleGrid, Skeleton, Stack } from "@mantine/core";
import { useNames } from "../../api/names.ts";
import { useRead } from "../../api/queries.ts";
import { useRefusals } from "../../api/refusals.ts";
import { useSession } from "../../api/session.tsx";
import type { AccountOverview, TierOverviewList } from "../../api/types.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Card } from "../../parts/page/section.tsx";
import { LimitRequests } from "../../parts/quotas/limit-requests.tsx";
import { UsedQuotas } from "../../parts/quotas/used-quotas.tsx";
import { QuotaMeters, RateMeters } from "../../parts/usage/account-meters.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { EndUsers } from "./end-users.tsx";
import { Explanations } from "./explanations.tsx";
import { RefusalHistory } from "./refusal-history.tsx";
import { TierTable } from "./tier-table.tsx";

const liveMs = 5_000;
const days = 7;

export function LimitsPage() {
  const { isManager } = useSession();
  const account = useRead<AccountOverview>("/v1/account", {}, { everyMs: liveMs });
  const tiers = useRead<TierOverviewList>("/v1/tiers");
  const refusals = useRefusals(days, 6 * liveMs);
  const names = useNames(true);
  const isOwn = account.data?.quota.usage_of === "caller";
  // Each part waits until the parts above have loaded, because a part above that loads later would move the parts
  // below.
  const hasAccount = account.data || account.error;
  const hasRefusals = hasAccount && (refusals.data || refusals.error) && !names.isPending;
  const hasTiers = tiers.data || tiers.error;
  return (
    <Page
      title="Limits"
      about={
        isOwn
          ? "What you may use, what is left for you, and your rate-limited requests."
          : "The limits of the account, what is left of them, and rate-limited requests."
      }
      actions={
        // The space is reserved before the badge loads, because on a phone the badge stands below the heading.
        <Box w="14rem" h={26} ta={{ base: "left", sm: "right" }}>
          {account.data && (
            <Badge size="lg" variant="light" tt="none">
              Tier: {account.data.tier}
            </Badge>
          )}
        </Box>
      }
    >
      <Stack gap="md">
        {account.error && !account.data ? (
          <Failure error={account.error} retry={account.refetch} />
        ) : account.data ? (
          <Now account={account.data} />
        ) : (
          <Skeleton height={180} />
        )}
        {hasAccount && <LimitRequests path="/v1/limit-requests" />}
        {hasRefusals ? (
          <RefusalHistory refusals={refusals.data?.data} error={refusals.error} names={names} days={days} />
        ) : (
          hasAccount && <Skeleton height={260} />
        )}
        {hasRefusals &&
          (tiers.error && !tiers.data ? (
            <Failure error={tiers.error} retry={tiers.refetch} />
          ) : tiers.data ? (
            <TierTable tiers={tiers.data.data} />
          ) : (
            <Skeleton height={160} />
          ))}
        {hasRefusals && hasTiers && isManager && <EndUsers />}
        {hasRefusals && hasTiers && <Explanations />}
      </Stack>
    </Page>
  );
}

function Now({ account }: { account: AccountOverview }) {
  const { isOperator, session } = useSession();
  const { limits, rate, quota, quotas, environment } = account;
  const isUnlimited = limits.requests_per_minute === null && limits.tokens_per_minute === null;
  return (
    <Stack gap="sm">
      {isUnlimited && (
        <Alert title={`No rate limits in the environment ${environmentNames[environment]}`} color="water">
          A tier is the set of limits of an account. The tier of this account, {account.tier}, sets no limits in this
          environment.{" "}
          {isOperator
            ? "You choose the environments of a tier under Tiers."
            : "Other environments may have limits. Choose an environment at the top of the page."}
        </Alert>
      )}
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        <Card title="Rate limits">
          <RateMeters rate={rate} />
          <SmallNote mt="sm">
            These figures apply to you and to all keys of the account. A key with its own limit can have less left.
          </SmallNote>
        </Card>
        {quotas.length > 0 && (
          <Card title="Quotas">
            <UsedQuotas
              quotas={quotas}
              ofMany
              mayAsk={({ owner }) => owner === "member" || (owner === "account" && session.role !== "member")}
            />
          </Card>
        )}
        <Card title={monthTitle(quota)}>
          <QuotaMeters quota={quota} />
        </Card>
      </SimpleGrid>
    </Stack>
  );
}

/** A member without a view of the account's usage sees their own figures, but a limit counts the usage of all members. */
function monthTitle({ usage_of: usageOf, tokens, spend }: AccountOverview["quota"]): string {
  if (usageOf === "account") return "Monthly limits";
  return tokens.limit === null && spend.limit === null ? "Your use this month" : "Monthly limits of the whole account";
}
