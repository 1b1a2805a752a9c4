#!/bin/sh
# Makes the containers of this folder with umoci 0.4, skopeo 1.9 and lz4 1.9, as root, in an empty directory.
set -e
umoci init --layout img; umoci new --image img:1
umoci unpack --image img:1 one
r=one/rootfs; mkdir -p $r/bin $r/etc $r/usr/lib $r/var/old $r/tmp; chmod 1777 $r/tmp
printf '#!/bin/sh\n' > $r/bin/server; chmod 755 $r/bin/server; ln $r/bin/server $r/bin/again; ln -s usr/lib $r/lib
echo one > $r/usr/lib/map; chown 1000:1000 $r/usr/lib/map; echo gone > $r/etc/gone; echo old > $r/var/old/1
cp $r/bin/server $r/bin/raised; chmod 4755 $r/bin/raised; mknod $r/null c 1 3
echo 'game:x:1000:1000::/home/game:/bin/sh' > $r/etc/passwd
umoci repack --image img:1 one
umoci unpack --image img:1 two
r=two/rootfs; rm $r/etc/gone; rm -r $r/var/old; mkdir $r/var/old; echo new > $r/var/old/2; rm $r/lib; mkdir $r/lib; echo x > $r/lib/x
ln -s /etc/passwd $r/usr/lib/link
umoci repack --image img:1 two
umoci config --image img:1 --config.user game --config.entrypoint /bin/server --config.cmd --fast --config.workingdir /tmp --config.env A=1
umoci unpack --image img:1 bundle
skopeo --insecure-policy copy oci:img:1 docker-archive:docker-archive.tar:room:1
skopeo --insecure-policy copy --dest-compress-format zstd oci:img:1 oci-archive:oci-archive.tar:room:1
tar -C bundle -cf oci-bundle.tar .
lz4 -9 -BD docker-archive.tar docker-archive.tar.lz4
gzip -9n oci-archive.tar oci-bundle.tar
