// One app that the user authorized: its developer, its scopes, the account, and the date of the authorization.
import { Anchor, Group, List, Paper, Skeleton, Stack, Text } from "@mantine/core";
import { TerminalIcon } from "@primer/octicons-react";
import { useRead } from "../../api/queries.ts";
import type { AuthorizationDetails } from "../../api/types.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { UsedQuotas } from "../../parts/quotas/used-quotas.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { day } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { type Allowed, commandLineId } from "./allowed.ts";
import { allowedWords } from "./app-scopes.ts";

interface AllowedAppProps {
  allowed: Allowed;
  /** Opens the form for the app's quotas. */
  limit(): void;
  /** Opens the form for the app's tools. */
  chooseTools(): void;
  takeBack(): void;
}

export function AllowedApp({ allowed, limit, chooseTools, takeBack }: AllowedAppProps) {
  const { app, account, environments, scopes, tools, quotas } = allowed;
  const isTool = app.id === commandLineId;
  return (
    <Paper withBorder p="lg" component="li">
      <Stack gap="sm">
        <Group justify="space-between" align="start" gap="sm">
          <div style={{ minWidth: 0 }}>
            <Text fw={600} component="h2" size="md" style={{ overflowWrap: "anywhere" }}>
              {isTool && <TerminalIcon />} <bdi>{app.name}</bdi>
            </Text>
            <SmallNote>
              {isTool ? (
                "Part of this server. Each login comes from headrace login."
              ) : (
                <>
                  By <bdi>{app.publisher}</bdi>
                  <HomePage url={app.homepage_url} />
                </>
              )}
            </SmallNote>
          </div>
          <Group gap="xs">
            <SmallButton
              onClick={limit}
              aria-label={
                isTool ? `Limit the command line for ${account.name}` : `Limit ${app.name} for ${account.name}`
              }
            >
              Limit
            </SmallButton>
            {scopes.includes("tools:use") && (
              <SmallButton
                onClick={chooseTools}
                aria-label={`Choose tools of ${isTool ? "the command line" : app.name} for ${account.name}`}
              >
                Tools
              </SmallButton>
            )}
            <SmallButton
              onClick={takeBack}
              aria-label={isTool ? `Sign out the command line for ${account.name}` : `Revoke access for ${app.name}`}
            >
              {isTool ? "Sign out" : "Revoke"}
            </SmallButton>
          </Group>
        </Group>
        <div>
          <SmallNote mb={2}>This app can</SmallNote>
          <List size="sm">
            {scopes.map((scope) => (
              <List.Item key={scope} style={{ overflowWrap: "anywhere" }}>
                {allowedWords[scope]}
                {scope === "tools:use" &&
                  tools !== null &&
                  (tools.length === 0 ? ": none" : `: only ${tools.join(", ")}`)}
              </List.Item>
            ))}
          </List>
        </div>
        {quotas.length > 0 && (
          <div>
            <SmallNote mb={2}>Quotas</SmallNote>
            <AppQuotas id={allowed.id} />
          </div>
        )}
        <Note>
          For the account <bdi>{account.name}</bdi>, in {environments.map((one) => environmentNames[one]).join(" and ")}{" "}
          · since {day(allowed.allowed_at)} ·{" "}
          {allowed.last_used_at === null ? (
            "not used yet"
          ) : (
            <>
              used <Ago seconds={allowed.last_used_at} />
            </>
          )}
        </Note>
      </Stack>
    </Paper>
  );
}

function AppQuotas({ id }: { id: string }) {
  const path = `/v1/authorizations/${encodeURIComponent(id)}`;
  const { data } = useRead<AuthorizationDetails>(path, {}, { everyMs: 15_000 });
  return data ? <UsedQuotas quotas={data.quotas_used} /> : <Skeleton height={44} />;
}

/** The app's developer wrote this address, so only http and https links are rendered. */
function HomePage({ url }: { url: string | null }) {
  const parsed = url === null ? null : URL.parse(url);
  if (!parsed || (parsed.protocol !== "https:" && parsed.protocol !== "http:")) return null;
  return (
    <>
      {" "}
      (
      <Anchor href={parsed.href} target="_blank" rel="noopener noreferrer" inherit underline="always">
        {parsed.host}
      </Anchor>
      )
    </>
  );
}
