"""Who may do what with a dataset: the entries of a Dataset resource's `access`.

**Invariant:** an entry names one member, or one view, routine or dataset, and nobody twice with the
same role.  Roles are returned in their older spelling, as BigQuery does.

Nothing is kept from anybody here: entries are only checked and stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedded.model.errors import invalid

if TYPE_CHECKING:
    from embedded.model.wire import Json

# "Dataset", REST reference: any of these spellings is taken, and the older one is returned.
ROLES = {
    "roles/bigquery.dataOwner": "OWNER",
    "roles/bigquery.dataEditor": "WRITER",
    "roles/bigquery.dataViewer": "READER",
}
MEMBERS = ("userByEmail", "groupByEmail", "domain", "specialGroup", "iamMember")
RESOURCES = ("view", "routine", "dataset")
SPECIAL = frozenset({"projectOwners", "projectReaders", "projectWriters", "allAuthenticatedUsers"})
NOBODY = ".invalid"
"""No address below this domain exists (RFC 2606), so that clients can be tested with one."""


def entries_of(given: object, dataset: str) -> list[Json]:
    """Return the entries as they are stored.

    Args:
        given: the client's value of `access`.
        dataset: the dataset's name, for messages.

    Raises:
        ApiError: an entry is not one.
    """
    if not isinstance(given, list):
        raise invalid("Invalid value for access: it is not a list")
    entries: list[Json] = []
    for one in given:
        entry = _entry(one, dataset)
        if entry not in entries:
            entries.append(entry)
    return entries


def _entry(given: object, dataset: str) -> Json:
    if not isinstance(given, dict):
        raise invalid("Invalid value for access: an entry is not an object")
    entry = {key: value for key, value in given.items() if value not in (None, "")}
    whom = [key for key in entry if key in {*MEMBERS, *RESOURCES}]
    if len(whom) != 1 or entry.keys() - {"role", *whom}:
        kinds = ", ".join((*MEMBERS, *RESOURCES))
        raise invalid(f"Invalid entry of access: it must have a role and one of {kinds}")
    if whom[0] in RESOURCES:
        if "role" in entry and whom[0] != "dataset":
            raise invalid(f"Invalid entry of access: a {whom[0]} has no role")
        return entry
    role = str(entry.get("role") or "")
    role = ROLES.get(role, role)
    if role not in ROLES.values() and not role.startswith(("roles/", "projects/")):
        raise invalid(f"Invalid value for role: {role!r}")
    member = str(entry[whom[0]])
    if whom[0] == "specialGroup" and member not in SPECIAL:
        raise invalid(f"Invalid value for specialGroup: {member}")
    if whom[0].endswith("ByEmail") and ("@" not in member or member.endswith(NOBODY)):
        kind = "Group" if whom[0] == "groupByEmail" else "User"
        raise invalid(
            f"IAM setPolicy failed for Dataset {dataset}: {kind} {member} does not exist."
        )
    return {"role": role, whom[0]: member}
