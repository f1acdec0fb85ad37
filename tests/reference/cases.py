"""All named cases, each after the rule it covers."""

from reference.case import Case
from reference.cases_contexts import CONTEXT_CASES
from reference.cases_devices import DEVICE_CASES
from reference.cases_forest import FOREST_CASES
from reference.cases_memory import MEMORY_CASES
from reference.cases_peak import PEAK_CASES
from reference.cases_roots import ROOT_CASES

CASES: dict[str, Case] = {
    **MEMORY_CASES,
    **PEAK_CASES,
    **FOREST_CASES,
    **CONTEXT_CASES,
    **ROOT_CASES,
    **DEVICE_CASES,
}
