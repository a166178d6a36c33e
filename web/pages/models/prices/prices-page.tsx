// The page Prices: what the models of this server cost, and what public models cost at their vendors.
import { Stack } from "@mantine/core";
import { useModels } from "../../../api/models.ts";
import { useList, useRead } from "../../../api/queries.ts";
import { useSession } from "../../../api/session.tsx";
import type { ListedPrice, PriceList } from "../../../api/types.ts";
import { FormDrawer } from "../../../parts/editing/form-drawer.tsx";
import { useAddress } from "../../../parts/page/address.ts";
import { Failure } from "../../../parts/page/failure.tsx";
import { Page } from "../../../parts/page/page.tsx";
import { Waiting } from "../../../parts/page/waiting.tsx";
import { shownModels, useManagedModels } from "../managed-models.ts";
import { ListedPriceView } from "./listed-price.tsx";
import { ListedPrices } from "./listed-prices.tsx";
import { OwnPrices } from "./own-prices.tsx";

const path = "/v1/prices";
/** The parameters of the page's address. `price` is the entry that is shown in full. */
const asked = { search: "", vendor: "", price: "" };

export function PricesPage() {
  const { isOperator } = useSession();
  const [{ search, vendor, price }, change] = useAddress(asked);
  const models = useModels();
  const managed = useManagedModels();
  const about = useRead<PriceList>(path, { limit: 1 });
  const listing = useList<ListedPrice>(path, { search, vendor, limit: 100 });
  // The entry that a link names may be far down the list, so it is loaded separately.
  const linked = useRead<PriceList>(path, { search: price, limit: 1 }, { enabled: price !== "" });
  const shown = [...listing.items, ...(linked.data?.data ?? [])].find(({ id }) => id === price);
  const isKnown = models.models && (!isOperator || managed.data !== undefined || managed.error !== null);
  const own = models.models && isKnown ? shownModels(models.models, managed.data?.data ?? []) : undefined;
  const failed = models.error ?? managed.error ?? about.error;
  const show = (id: string) => change({ price: id });
  return (
    <Page title="Prices" about="Prices of the models on this server and of public models at their vendors.">
      <Stack gap="lg">
        {failed && <Failure error={failed} retry={() => void Promise.all([models.refetch(), about.refetch()])} />}
        {own ? <OwnPrices models={own} isOperator={isOperator} show={show} /> : !failed && <Waiting heights={[220]} />}
        {(own || failed) && about.data && (
          <ListedPrices {...{ listing, search, vendor, show, change }} list={about.data} />
        )}
      </Stack>
      <FormDrawer of={shown} close={() => change({ price: "" })} size="lg" title={() => "Price of a vendor"}>
        {(listed) => (
          <ListedPriceView
            key={listed.id}
            listed={listed}
            source={about.data ? `Prices of ${about.data.date}, from ${about.data.source}.` : ""}
            models={isOperator ? managed.data?.data : undefined}
          />
        )}
      </FormDrawer>
    </Page>
  );
}
