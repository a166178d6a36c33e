"""Writes src/prices/vendor-prices.json from the package genai-prices (MIT), in the words of headrace.yaml.

    python3 -m venv /tmp/prices && /tmp/prices/bin/pip install genai-prices==0.2.3
    /tmp/prices/bin/python scripts/vendor-prices.py 2026-11-22 > src/prices/vendor-prices.json

The argument is the day whose prices are the usual ones; later ones become variants with `from`.
"""

import datetime
import json
import sys
from importlib.metadata import version

from genai_prices.data import providers

RATES = {
    "input_mtok": "input",
    "cache_read_mtok": "cached_input",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "input_audio_mtok": "input_audio",
    "input_image_mtok": "input_image",
    "output_mtok": "output",
    "output_reasoning_mtok": "reasoning",
    "output_audio_mtok": "output_audio",
    "output_image_mtok": "output_image",
}
EACH = {"requests_kcount": "request", "web_searches_kcount": "search"}
INSTEAD = {"cached_input": "input", "cache_write": "input", "cache_write_1h": "cache_write", "reasoning": "output"}
SERVED = {"service_tier", "processing", "speed"}
USUAL = {"default", "standard", "auto"}


def number(value):
    """A price as JSON has it: their decimals are short enough for a double to print them as they are."""
    value = float(value)
    return int(value) if value.is_integer() else value


def rates_of(prices):
    """The usual rates, and those of each length of prompt from which on they are others."""
    base, tiers = {}, {}
    for key, name in {**RATES, **EACH}.items():
        value = getattr(prices, key, None)
        if value is None:
            continue
        per = 1000 if key in EACH else 1
        if hasattr(value, "tiers"):
            base[name] = number(value.base / per)
            for tier in value.tiers:
                tiers.setdefault(tier.start, {})[name] = number(tier.price / per)
        else:
            base[name] = number(value / per)
    return base, [{"context_above": start, **tiers[start]} for start in sorted(tiers)]


def conditions_of(constraint):
    if constraint is None:
        return {}
    if hasattr(constraint, "start_date"):
        return {"from": constraint.start_date.isoformat()}
    return {"hours": [f"{clock_of(constraint.start_time)}-{clock_of(constraint.end_time)}"]}


def clock_of(time):
    """In UTC."""
    if time.tzinfo is not None:
        time = datetime.datetime.combine(datetime.date(1970, 1, 2), time).astimezone(datetime.timezone.utc).time()
    return time.strftime("%H:%M")


def price_of(model, day):
    conditional = model.prices if isinstance(model.prices, list) else [None]
    usual, later = None, []
    for one in conditional:
        prices, constraint = (model.prices, None) if one is None else (one.prices, one.constraint)
        conditions = conditions_of(constraint)
        if "hours" not in conditions and conditions.get("from", "") <= day:
            usual = prices
        else:
            later.append((conditions, prices))
    if usual is None:
        return None
    base, variants = rates_of(usual)
    if "input" not in base:
        return None
    base.setdefault("output", 0)
    for conditions, prices in later:
        rates, tiers = rates_of(prices)
        for name, other in INSTEAD.items():
            # One that is not said any more is as the rate that stands in for it.
            if name in base and name not in rates and other in rates:
                rates[name] = rates[other]
        variants.append({**conditions, **rates})
        variants.extend({**conditions, **tier} for tier in tiers)
    # There the first that applies wins, here the last.
    for variant in reversed(model.price_variants or []):
        names = [value.lower() for key, value in variant.when.items() if key in SERVED]
        if len(names) != len(variant.when) or len(names) != 1 or names[0] in USUAL:
            continue
        conditions = conditions_of(variant.constraint)
        if conditions.get("from", "9") <= day:
            del conditions["from"]
        rates, tiers = rates_of(variant.prices)
        variants.append({"served": names[0], **conditions, **rates})
        variants.extend({"served": names[0], **conditions, **tier} for tier in tiers)
    return {**base, **({"variants": variants[:16]} if variants else {})}


def main():
    day = sys.argv[1]
    vendors = []
    for provider in providers:
        models = []
        for model in provider.models:
            price = price_of(model, day)
            if price is not None:
                models.append({"id": model.id, **({"context": model.context_window} if model.context_window else {}), "price": price})
        if models:
            vendors.append({"id": provider.id, "name": provider.name, "models": models})
    head = json.dumps({"source": f"genai-prices {version('genai-prices')} (MIT)", "date": day})
    print(head[:-1] + ', "vendors": [')
    for place, vendor in enumerate(vendors):
        models = vendor.pop("models")
        print(json.dumps(vendor, ensure_ascii=False)[:-1] + ', "models": [')
        print(",\n".join(json.dumps(model, ensure_ascii=False, separators=(",", ":")) for model in models))
        print("]}" + ("," if place < len(vendors) - 1 else ""))
    print("]}")


main()
