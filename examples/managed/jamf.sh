#!/bin/sh
# A script for a Jamf policy that runs after the package was installed: sets longhaul up for the user at the screen.
# Jamf passes its own parameters first; the fourth is the first that a policy can set: here the address of a configuration.
set -eu
source=${4:?set parameter 4 of the policy to the https address of a configuration}
user=$(stat -f %Su /dev/console)
case $user in
  root | _mbsetupuser | loginwindow | '') echo 'longhaul: no user is at the screen; run this policy at login'; exit 1 ;;
esac
uid=$(id -u "$user")
as_user() { launchctl asuser "$uid" sudo -H -u "$user" /usr/local/bin/longhaul "$@"; }
as_user init --from "$source" --yes --force
as_user service install
as_user doctor || echo 'longhaul: doctor found a problem; its lines are above'
