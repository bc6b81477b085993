#!/bin/sh
# Put standard input into a jostler spool as one file.
# usage: write.sh SPOOL-DIR NAME.json < document
#   SPOOL-DIR is <local-data-dir>/<experiment>/<datatype>; the file goes to the folder of today, UTC.
set -eu

top=$1 name=$2
# Hidden, so the agent does not look into it, and on the same file system, so mv is a rename.
staging=$top/.tmp-write-sh
folder=$top/$(date -u +%Y/%m/%d)
mkdir -p "$staging" "$folder"

part=$(mktemp "$staging/XXXXXXXXXX")
trap 'rm -f "$part"' EXIT
cat > "$part"
chmod 644 "$part"               # mktemp made it unreadable for others, such as the agent
sync "$part"                    # the bytes first
mv -n "$part" "$folder/$name"   # -n: never in the place of another file
if [ -e "$part" ]; then
    echo "$folder/$name is there already" >&2
    exit 1
fi
sync "$folder"                  # then the name
