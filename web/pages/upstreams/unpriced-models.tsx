// A notice about an upstream's models without a price, with a link to set one.
import { Alert } from "@mantine/core";
import { InfoIcon } from "@primer/octicons-react";
import { useRead } from "../../api/queries.ts";
import type { ManagedModelList } from "../../api/types.ts";
import { TextLink } from "../../parts/page/links.tsx";
import { count } from "../../parts/words/figures.ts";

export function UnpricedModels({ upstream }: { upstream: string }) {
  const read = useRead<ManagedModelList>("/v1/admin/models");
  const here = (read.data?.data ?? []).filter(({ deployments }) =>
    deployments.some((one) => one.upstream === upstream),
  );
  const free = here.filter(({ price }) => price === null).length;
  if (free === 0) return null;
  return (
    <Alert icon={<InfoIcon />} color="gray" title="No price set">
      {free === here.length
        ? `Its ${free === 1 ? "model has" : `${count(free)} models have`} no price`
        : `${count(free)} of its ${count(here.length)} models ${free === 1 ? "has" : "have"} no price`}
      : what {free === 1 ? "it uses" : "they use"} is not counted as spend, and no quota in USD bounds it.{" "}
      <TextLink href={`/catalog?search=${encodeURIComponent(upstream)}`}>Set prices</TextLink>
    </Alert>
  );
}
