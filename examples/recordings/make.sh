#!/usr/bin/env bash
# make.sh FOLDER [NAME...] - makes the example recordings with real programs: each works in FOLDER (it must be empty or absent, and is
# removed at the end), recorded with strace. $LONGHAUL is the program (default: longhaul). It needs git, rsync, file, sqlite3, GraphicsMagick
# (gm) and strace. The recordings are written to this script's folder.
set -euo pipefail
folder=${1:?a folder to work in} here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shift
LONGHAUL=${LONGHAUL:-longhaul}
data=$(mktemp -d)
trap 'rm -rf "$data" "$folder"' EXIT
mkdir -p "$folder"

documents() {   # documents FOLDER: a home folder of 400 files in 20 folders
  for f in $(seq 20); do
    mkdir -p "$1/folder $f"
    for i in $(seq 20); do head -c $((500 << (i % 9))) /dev/urandom >"$1/folder $f/document $i.pdf"; done
  done
}
photos() {   # photos FOLDER COUNT
  mkdir -p "$1"
  for i in $(seq "$2"); do gm convert -size 600x400 "plasma:#$(printf %06x $((i * 99991 % 16777216)))" "$1/photo $i.jpg"; done
}
record() {   # record NAME PROGRAM...: what the program does in the folder
  local name=$1
  shift
  "$LONGHAUL" --database "$data/x.sqlite" record --on "$folder" --name "$name" -- "$@" >/dev/null
  cp "$data/recordings/$name.recording" "$here/$name.recording"
}
# rsync of a home folder to the share: first all of it, then what changed.
make_rsync() {
  documents "$data/home"
  record rsync bash -c "rsync -a '$data/home' '$folder'; touch '$data/home/folder 3/document 5.pdf'; rsync -a '$data/home' '$folder'"
}
# git clone onto the share, then status.
make_git() {
  git init -q "$data/origin"
  documents "$data/origin/src"
  git -C "$data/origin" add . && git -C "$data/origin" -c user.name=a -c user.email=a@b commit -qm one
  record git bash -c "git clone -q 'file://$data/origin' '$folder/clone'; cd '$folder/clone'; git status; git status"
}
# A thumbnail of each of 155 photos.
make_thumbnails() {
  photos "$folder/photos" 155
  record thumbnails bash -c "cd '$folder'; mkdir thumbnails; for p in photos/*; do gm convert \"\$p\" -thumbnail 160x160 \"thumbnails/\${p##*/}\"; done"
}
# Search by name, then look into each file.
make_search() {
  documents "$folder/home"
  record search bash -c "cd '$folder'; find home -name '*.pdf' -print0 | xargs -0 file"
}
# A catalogue of photos in SQLite: insert, update, look up.
make_catalogue() {
  record catalogue bash -c "cd '$folder'; sqlite3 photos.db 'create table photo(name primary key, rating)'
    for i in \$(seq 60); do sqlite3 photos.db \"insert into photo values('photo \$i.jpg', 0)\"; done
    for i in \$(seq 20); do sqlite3 photos.db \"update photo set rating = 5 where name = 'photo \$i.jpg'; select * from photo\"; done"
}
# An import as of a photo program: copy from a card into folders by day, read the metadata, write previews and a catalogue.
make_import() {
  photos "$data/card" 60
  record import bash -c "cd '$folder'; for i in \$(seq 60); do day=day-\$((i % 5)); mkdir -p \$day previews
    cp -p '$data/card/photo '\$i.jpg \$day/\$i.jpg; gm identify \$day/\$i.jpg; gm convert \$day/\$i.jpg -thumbnail 300x300 previews/\$i.jpg
    sqlite3 catalogue.db \"create table if not exists p(n); insert into p values(\$i)\"; done"
}
for name in "${@:-rsync git thumbnails search catalogue import}"; do
  for one in $name; do "make_$one"; rm -rf "${folder:?}"/*; done
done
